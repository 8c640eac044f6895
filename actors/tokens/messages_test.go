package tokens

import (
	"errors"
	"testing"

	"stagedoor/state"
)

// The writer may run a command several times. The refusal of a run whose changes were discarded is not the answer.
func TestOnlyTheLastRunOfACommandAnswers(t *testing.T) {
	refusals := []error{&keptRefusal{refusal: errors.New("reused")}, nil}
	m := &deciding{ctx: t.Context(), run: func(*state.Tx) error {
		next := refusals[0]
		refusals = refusals[1:]
		return next
	}}
	for range 2 {
		if err := m.execute(new(state.Tx)); err != nil {
			t.Fatal(err)
		}
	}
	if m.refusal != nil {
		t.Errorf("the answer is %v, which an earlier run decided", m.refusal)
	}
}
