package dialogue_test

import (
	"fmt"
	"slices"
	"testing"

	"stagedoor/providers/dialogue"
)

// Every piece of a reply is searched for the stop sequences that the gateway enforces. More of them than a client has a
// use for are a loss and no work without a bound.
func TestStopSequencesThatTheGatewayLooksForAreBounded(t *testing.T) {
	var r dialogue.Request
	for i := range 100_000 {
		r.Stop = append(r.Stop, fmt.Sprint("stop ", i))
	}
	var rep dialogue.Report
	sent := r.UpstreamStop(4, nil, &rep)
	if len(sent) != 4 || len(r.Enforced.Stop) < 16 || len(r.Enforced.Stop) > 256 ||
		!slices.Equal(rep.Losses(), []string{"stop:truncated"}) {
		t.Errorf("%d sent, %d enforced, losses %q", len(sent), len(r.Enforced.Stop), rep.Losses())
	}
}
