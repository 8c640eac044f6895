package topcli

import (
	"errors"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	httpflow "stagedoor/http/flow"
)

func snapshotOf(ids ...string) snapshot {
	place := 2
	g := snapshot{
		Providers: []httpflow.Provider{
			{Name: "up", Answers: true, Places: 3, InFlight: 3, Breaker: "closed"},
			{Name: "down", Answers: true, Paused: true},
		},
		Actors: httpflow.Actors{
			Actors: []httpflow.Actor{
				{ID: "gate@1", Name: "gate", Kind: "gate"},
				{ID: "gate@1/s0@2", Parent: "gate@1", Name: "s0", Kind: "shard", Depth: 7},
			},
			Kinds: []httpflow.Kind{
				{Name: "gate", Live: 1},
				{
					Name:        "request",
					Live:        9000,
					LastFailure: &httpflow.ActorFailure{Reason: "index out of range", Message: "*x"},
				},
			},
		},
	}
	g.Flow.Load.InFlight = len(ids)
	for _, id := range ids {
		g.Flow.Data = append(
			g.Flow.Data,
			httpflow.Request{
				ID:            id,
				Phase:         "queued",
				QueuePosition: &place,
				Model:         "m\x1b[2J",
				OutputTokens:  12,
				DurationMs:    61_500,
			},
		)
	}
	return g
}

func TestTopDrawsRequestsProvidersAndActors(t *testing.T) {
	d := &screen{ctx: t.Context(), width: 120, height: 24}
	all, made := snapshotOf("req_1", "req_2"), 42
	all.Flow.Data = append(all.Flow.Data, httpflow.Request{ID: "video_1", Phase: "in_progress", Progress: &made})
	d.Update(update{all, nil})
	for view, wants := range [][]string{{"2 under way", "queued 2", "in_progress 42 %", "1m2s", "m?[2J"},
		{"up", "3/3", "serving", "paused"}, {"  s0", "7", "all of kind request", "9000", "index out of range"}} {
		d.Update(tea.KeyPressMsg{Code: rune('1' + view), Text: string(rune('1' + view))})
		for _, want := range wants {
			if text := d.draw(); !strings.Contains(text, want) {
				t.Errorf("view %d lacks %q:\n%s", view+1, want, text)
			}
		}
	}
	d.Update(tea.WindowSizeMsg{Width: 30, Height: 8})
	d.Update(update{snapshotOf(strings.Split(strings.Repeat("req ", 500), " ")...), nil})
	for _, key := range "123" {
		d.Update(tea.KeyPressMsg{Code: key, Text: string(key)})
		if lines := strings.Count(d.draw(), "\n") + 1; lines > 8 {
			t.Errorf("%d lines on a screen of 8", lines)
		}
	}
}

func TestTopEndsARequestOnlyAfterConfirmation(t *testing.T) {
	press := func(d *screen, keys ...string) (last tea.Cmd) {
		for _, k := range keys {
			m := tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
			if k == "down" {
				m = tea.KeyPressMsg{Code: tea.KeyDown}
			}
			_, last = d.Update(m)
		}
		return last
	}
	for _, c := range []struct {
		keys []string
		acts bool
	}{
		{[]string{"e", "y"}, true}, {[]string{"down", "e", "y"}, true}, {[]string{"e", "down", "y"}, false},
		{[]string{"y"}, false},
		{[]string{"2", "e", "y"}, false}, {[]string{"2", "p"}, true}, {[]string{"1", "p"}, false},
		{[]string{"3", "p"}, false},
	} {
		d := &screen{ctx: t.Context(), now: snapshotOf("req_1", "req_2"), width: 80, height: 24}
		if got := press(d, c.keys...) != nil; got != c.acts {
			t.Errorf("%v: acts %v, want %v", c.keys, got, c.acts)
		}
	}
	d := &screen{ctx: t.Context(), now: snapshotOf("req_1", "req_2"), width: 80, height: 24}
	press(d, "down", "e")
	if text := d.draw(); !strings.Contains(text, "end req_2?") {
		t.Errorf("it does not ask:\n%s", text)
	}
	d.Update(update{snapshotOf("req_1"), nil}) // the chosen request has gone, and no other may end in its place
	if press(d, "x"); d.confirming != "" {
		t.Error("another key ends it")
	}
	d.Update(update{snapshot{}, errors.New("no")})
	if text := d.draw(); !strings.Contains(text, "does not answer: no") || !strings.Contains(text, "req_1") {
		t.Errorf("the last snapshot has gone:\n%s", text)
	}
	if cmd := press(d, "q"); cmd == nil {
		t.Error("q does not leave")
	}
}
