package state_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// crashDir tells a test binary that it is the process that is killed.
const crashDir = "STAGEDOOR_TEST_CRASH_DIR"

const crashWriters = 8

// child writes until it is killed and prints the id of every response that was
// acknowledged. It tells whether this process is one.
func child() bool {
	dir := os.Getenv(crashDir)
	if dir == "" {
		return false
	}
	store, err := journal.OpenBolt(dir, journal.Options{LowWater: -1})
	if err != nil {
		fmt.Println("error", err)
		return true
	}
	s, err := state.Open(store, time.Now)
	if err != nil {
		fmt.Println("error", err)
		return true
	}
	run := os.Getpid()
	var out sync.Mutex // one line is one write
	var wg sync.WaitGroup
	for w := range crashWriters {
		wg.Go(func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("resp_%d-%d-%d", run, w, n)
				r := state.StoredResponse{Body: []byte(`{"id":"` + id + `"}`)}
				r.ID, r.Owner, r.Status = id, "key:k", "completed"
				if err := s.PutResponse(context.Background(), r); err != nil {
					fmt.Println("error", err)
					return
				}
				out.Lock()
				fmt.Println(id)
				out.Unlock()
			}
		})
	}
	wg.Wait()
	return true
}

func TestKilledProcessLosesNothingAcknowledged(t *testing.T) {
	dir, cycles := t.TempDir(), 10
	if testing.Short() {
		cycles = 3
	}
	acknowledged := map[string]bool{}
	for range cycles {
		killDuringWrites(t, dir, acknowledged)
		checkAcknowledged(t, dir, acknowledged)
	}
	if len(acknowledged) < cycles {
		t.Errorf("only %d acknowledged writes: nothing was tested", len(acknowledged))
	}
	t.Logf("%d acknowledged writes survived %d kills", len(acknowledged), cycles)
}

// killDuringWrites kills the child after some hundreds of acknowledgements, and
// counts those that are still in the pipe: they were given.
func killDuringWrites(t *testing.T, dir string, acknowledged map[string]bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if strings.HasPrefix(lines.Text(), "error") {
			t.Errorf("child: %s", lines.Text())
		}
		acknowledged[lines.Text()] = true
		if n == 300 {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the child ended by itself")
	}
}

func checkAcknowledged(t *testing.T, dir string, acknowledged map[string]bool) {
	t.Helper()
	store, err := journal.OpenBolt(dir, journal.Options{LowWater: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s := open(t, store, time.Now)
	defer s.Close()
	for id := range acknowledged {
		r, err := s.Response(ctx, id, "key:k")
		if err != nil || string(r.Body) != `{"id":"`+id+`"}` {
			t.Errorf("%s was acknowledged: got %q, %v", id, r.Body, err)
		}
	}
}
