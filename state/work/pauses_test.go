package work_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/work"
)

func TestPausesSurviveARestartUntilTheyAreEnded(t *testing.T) {
	clock, store := newClock(), journal.NewMemory()
	s := open(t, store, clock.Now)
	for _, name := range []string{"up", "a b/ü"} {
		must(t, s, func(tx *state.Tx) error { return work.PauseProvider(tx, name) })
		clock.Add(time.Hour)
	}
	must(t, s, func(tx *state.Tx) error { return work.PauseProvider(tx, "up") }) // it is
	s = open(t, store, clock.Now)
	all := work.ListPauses(s.View())
	if len(all) != 2 || all[0].Provider != "a b/ü" || all[1].Provider != "up" || !all[1].Since.Equal(start) ||
		!all[0].Since.Equal(start.Add(time.Hour)) {
		t.Fatalf("got %+v", all)
	}
	if _, ok := work.FindPause(s.View(), "u"); ok {
		t.Error("a part of a name is paused")
	}
	must(t, s, func(tx *state.Tx) error { work.EndPause(tx, "up"); work.EndPause(tx, "never"); return nil })
	s = open(t, store, clock.Now)
	if all := work.ListPauses(s.View()); len(all) != 1 || all[0].Provider != "a b/ü" {
		t.Errorf("after one has ended: %+v", all)
	}
}

func TestPauseNeedsAName(t *testing.T) {
	s := newState(t)
	for _, name := range []string{"", strings.Repeat("x", 129)} {
		if err := try(s, func(tx *state.Tx) error { return work.PauseProvider(tx, name) }); !errors.Is(err,
			state.ErrInvalid) {
			t.Errorf("%d bytes: %v", len(name), err)
		}
	}
	if all := work.ListPauses(s.View()); all != nil {
		t.Errorf("kept: %+v", all)
	}
}
