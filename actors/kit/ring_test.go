package kit

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"pgregory.net/rapid"
)

func TestRingIsAQueueThatGivesMemoryBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ring
		var model []int
		for i, grow := range rapid.SliceOf(rapid.IntRange(-40, 60)).Draw(t, "steps") {
			for range max(grow, 0) {
				r.push(i)
				model = append(model, i)
			}
			for range min(max(-grow, 0), len(model)) {
				if got := r.pop(); got != model[0] {
					t.Fatalf("got %v, want %d", got, model[0])
				}
				model = model[1:]
			}
			if r.count != len(model) {
				t.Fatalf("count %d, want %d", r.count, len(model))
			}
		}
		for range model {
			r.pop()
		}
		if r.pop() != nil || len(r.items) > 8*ringMin {
			t.Fatalf("%d slots are kept for nothing", len(r.items))
		}
	})
}

func TestMutedLogShowsTypesAndNames(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(muted{slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})})
	secret := struct{ Prompt string }{"a prompt"}
	log.With("who", actor.NewPID("nonhost", "p/openai")).Info("dead",
		"message", "a prompt", "body", secret, "reason", "a prompt", "count", 3)
	got := out.String()
	if strings.Contains(got, "a prompt") || !strings.Contains(got, "p/openai") || !strings.Contains(got, "count=3") {
		t.Errorf("got %s", got)
	}
	if !strings.Contains(got, "level=DEBUG") {
		t.Errorf("chatter at a loud level: %s", got)
	}
}
