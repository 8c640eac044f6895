package dialogue_test

import (
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
)

// Any proof may be sent until the upstream has refused one. Then only those are sent that the very
// model of the very provider gave out, because some bind reasoning to the model.
func TestProofsGoBackToTheModelThatMadeThem(t *testing.T) {
	env := dialoguetest.NewEnv(0, "id")
	env.RememberProof("p", "a", "m")
	for _, c := range []struct {
		provider, model, proof string
		own, accepted          bool
	}{
		{"b", "m", "p", false, true}, {"a", "m", "p", true, true}, {"b", "m", "p", true, false},
		{"a", "n", "p", true, false}, {"a", "m", "unknown", true, false},
	} {
		target := dialogue.Target{Provider: c.provider, Model: c.model, OwnReasoning: c.own}
		if got := env.Accepts(target, c.proof); got != c.accepted {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
