package throttle

import (
	"fmt"
	"testing"
	"time"
)

// of asks for a model.
func (w *world) of(key, model string, wait time.Duration) *ticket {
	t := &ticket{owner: key, model: model, class: Normal, asked: w.now, verdict: make(chan *Refused, 1)}
	if wait > 0 {
		t.deadline = w.now.Add(wait)
	}
	w.core.acquire(w.now, t)
	w.waiting = append(w.waiting, t)
	w.core.dispatch(w.now)
	w.collectAll()
	return t
}

func (w *world) collectAll() {
	still := w.waiting[:0]
	for _, k := range w.waiting {
		select {
		case refused := <-k.verdict:
			if refused == nil {
				w.holding = append(w.holding, k)
			}
		default:
			still = append(still, k)
		}
	}
	w.waiting = still
}

func (w *world) end(t *ticket, o Outcome) {
	w.core.release(w.now, t, &o)
	w.core.dispatch(w.now)
	w.collectAll()
}

func (w *world) granted(t *ticket) bool { return !t.granted.IsZero() }

// TestACoolDownHoldsUpItsModelOnly: requests for a model that was refused wait, and those
// for other models pass them, of the same key and of others.
func TestACoolDownHoldsUpItsModelOnly(t *testing.T) {
	for _, refusal := range []Outcome{{Kind: RateLimited}, {Kind: RateLimited, RetryAfter: 5 * time.Second},
		{Kind: Overloaded, RetryAfter: 5 * time.Second}} {
		said := refusal.RetryAfter
		w := newWorld(Config{MaxInFlight: 4})
		w.end(w.of("a", "busy", 0), refusal)
		wait := max(said, firstCool)
		first, second := w.of("a", "busy", 0), w.of("b", "busy", time.Minute)
		for i, key := range []string{"a", "b", "c", "a"} {
			if k := w.of(key, "idle", 0); !w.granted(k) {
				t.Errorf("request %d for another model waits", i)
			}
		}
		if w.granted(first) || w.granted(second) {
			t.Fatal("a request was sent to the model that cools")
		}
		for _, k := range w.holding {
			w.core.release(w.now, k, &Outcome{})
		}
		w.holding = nil
		next := w.core.dispatch(w.now)
		if next.Sub(w.now) != wait {
			t.Errorf("reported %v: wakes after %v", said, next.Sub(w.now))
		}
		w.now = next
		w.core.dispatch(w.now)
		w.collectAll()
		if !w.granted(first) || !w.granted(second) {
			t.Errorf("reported %v: the model still cools after its time", said)
		}
	}
}

func TestALongCoolDownRefusesItsModelOnly(t *testing.T) {
	w := newWorld(Config{})
	w.end(w.of("a", "busy", 0), Outcome{Kind: RateLimited, RetryAfter: time.Minute})
	if k := w.of("b", "busy", 0); w.granted(k) || len(w.waiting) != 0 {
		t.Error("a request waits for a minute")
	}
	if k := w.of("b", "idle", 0); !w.granted(k) {
		t.Error("a request for another model was not sent")
	}
	if w.core.stats(w.now).CoolDown != time.Minute {
		t.Errorf("shown: %v", w.core.stats(w.now).CoolDown)
	}
}

func TestModelsThatCoolAreBounded(t *testing.T) {
	c := new(coolDowns)
	now := time.Unix(1000, 0)
	for i := range 3 * maxCooling {
		c.model(now, fmt.Sprint("m", i)).until = now.Add(time.Duration(i+1) * time.Second)
	}
	if n := len(c.models); n != maxCooling {
		t.Errorf("%d models are kept, want %d", n, maxCooling)
	}
	for _, i := range []int{2 * maxCooling, 3*maxCooling - 1} {
		if c.models[fmt.Sprint("m", i)] == nil {
			t.Errorf("model %d, one of those that cool for longest, was forgotten", i)
		}
	}
}

// TestModelsThatCoolNoLongerAreForgotten: clients choose the names.
func TestModelsThatCoolNoLongerAreForgotten(t *testing.T) {
	w := newWorld(Config{})
	for i := range 10 * keptModels {
		k := w.of("a", fmt.Sprint("m", i), 0)
		w.end(k, Outcome{Kind: RateLimited})
		w.now = w.now.Add(2 * time.Second)
	}
	if n := len(w.core.cooling.models); n > keptModels {
		t.Errorf("%d models are kept", n)
	}
}
