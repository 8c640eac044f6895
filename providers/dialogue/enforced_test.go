package dialogue_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
)

// Every piece of a reply is searched for the stop sequences that the gateway enforces. More of them than a client has a
// use for are a loss and no work without a bound.
func TestStopSequencesThatTheGatewayLooksForAreBounded(t *testing.T) {
	var r dialogue.Request
	for i := range 100_000 {
		r.Stop = append(r.Stop, fmt.Sprint("stop ", i))
		if i == 20 {
			r.Stop = append(r.Stop, strings.Repeat("long ", 1<<20))
		}
	}
	var rep dialogue.Report
	sent := r.UpstreamStop(4, nil, &rep)
	for _, s := range r.Enforced.Stop {
		if len(s) > 1<<10 {
			t.Errorf("a sequence of %d bytes is enforced", len(s))
		}
	}
	if len(sent) != 4 || len(r.Enforced.Stop) < 16 || len(r.Enforced.Stop) > 256 ||
		!slices.Equal(rep.Losses(), []string{"stop:truncated"}) {
		t.Errorf("%d sent, %d enforced, losses %q", len(sent), len(r.Enforced.Stop), rep.Losses())
	}
}
