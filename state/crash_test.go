package state_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"stagedoor/state"
	"stagedoor/state/statetest"
	"stagedoor/state/statetest/ondisk"
	"stagedoor/state/work"
)

const crashWriters = 8

// writeUntilKilled stores responses and says the id of every one that was
// acknowledged.
func writeUntilKilled(dir string, say statetest.PrintLine) error {
	s, _, err := ondisk.Open(dir)
	if err != nil {
		return err
	}
	failures := make(chan error, crashWriters)
	for w := range crashWriters {
		go func() { failures <- storeResponses(s, w, say) }()
	}
	return <-failures
}

// storeResponses is one writer.
func storeResponses(s *state.State, w int, say statetest.PrintLine) error {
	for n := 0; ; n++ {
		id := fmt.Sprintf("resp_%d-%d-%d", os.Getpid(), w, n)
		r := work.StoredResponse{Body: []byte(`{"id":"` + id + `"}`)}
		r.ID, r.Owner, r.Status = id, "key:k", "completed"
		if err := work.PutResponse(context.Background(), s, r); err != nil {
			return err
		}
		say(id)
	}
}

func TestKilledProcessLosesNothingAcknowledged(t *testing.T) {
	dir, cycles := t.TempDir(), 10
	if testing.Short() {
		cycles = 3
	}
	acknowledged := map[string]bool{}
	for range cycles {
		statetest.Kill(t, dir, func(line string) { acknowledged[line] = true })
		checkAcknowledged(t, dir, acknowledged)
	}
	if len(acknowledged) < cycles {
		t.Errorf("only %d acknowledged writes: nothing was tested", len(acknowledged))
	}
	t.Logf("%d acknowledged writes survived %d kills", len(acknowledged), cycles)
}

func checkAcknowledged(t *testing.T, dir string, acknowledged map[string]bool) {
	t.Helper()
	s, end, err := ondisk.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	for id := range acknowledged {
		r, err := work.ReadResponse(ctx, s, id, "key:k")
		if err != nil || string(r.Body) != `{"id":"`+id+`"}` {
			t.Errorf("%s was acknowledged: got %q, %v", id, r.Body, err)
		}
	}
}
