package videocli

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"stagedoor/cmd/stagedoor/videoclient"
)

func TestBarsFillByEighths(t *testing.T) {
	for _, test := range []struct {
		done, total int
		want        string
	}{
		{0, 100, strings.Repeat("░", 24)}, {100, 100, strings.Repeat("█", 24)},
		{50, 100, strings.Repeat("█", 12) + strings.Repeat("░", 12)},
		{-5, 100, strings.Repeat("░", 24)}, {200, 100, strings.Repeat("█", 24)},
		{1, 100, "▏" + strings.Repeat("░", 23)},
	} {
		if got := drawBar(test.done, test.total); got != test.want {
			t.Errorf("%d of %d: %s", test.done, test.total, got)
		}
	}
	for n := range 1001 {
		if got := drawBar(n, 1000); utf8.RuneCountInString(got) != barWidth {
			t.Errorf("%d: %q", n, got)
		}
	}
}

func TestTheScreenFitsTheTerminal(t *testing.T) {
	b := &bars{now: time.Unix(100, 0)}
	b.Update(tea.WindowSizeMsg{Width: 60, Height: 8})
	prompt := "a \x1b[2J very long prompt that goes on and on and on and on, and further"
	for i := range 20 {
		j := videoclient.Job{
			ID:        fmt.Sprint("video_", i),
			Status:    "in_progress",
			Progress:  5 * i,
			CreatedAt: 35,
			Prompt:    &prompt,
		}
		if i%2 == 0 {
			j.Status = videoclient.Completed
		}
		b.Update(jobUpdate(j))
	}
	b.Update(fileUpdate{"a.mp4", 500, 1000})
	b.Update(noteUpdate("the connection was lost"))
	text := b.draw()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > 7 || strings.Contains(text, "\x1b") {
		t.Errorf("%d lines:\n%s", len(lines), text)
	}
	for _, line := range lines {
		if utf8.RuneCountInString(line) > 60 {
			t.Errorf("too wide: %q", line)
		}
	}
	for _, want := range []string{"and 16 more jobs", "50%  500 of 1000 bytes  a.mp4", "the connection was lost",
		"in_progress  1:05"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "completed") {
		t.Errorf("a finished job takes the place of an unfinished one:\n%s", text)
	}
	b.Update(jobUpdate{ID: "video_1", Status: "in_progress", Progress: 99})
	if strings.Contains(b.draw(), "connection") || len(b.jobs) != 20 {
		t.Errorf("an update does not remove the note:\n%s", b.draw())
	}
}

func TestTheScreenClosesWhenTheWorkEndsOrAKeyIsPressed(t *testing.T) {
	for _, m := range []tea.Msg{workDone{}, tea.KeyPressMsg{Code: 'q', Text: "q"},
		tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}, tea.KeyPressMsg{Code: tea.KeyEscape}} {
		if _, cmd := (&bars{}).Update(m); cmd == nil {
			t.Errorf("%v does not end it", m)
		}
	}
	if _, cmd := (&bars{}).Update(tea.KeyPressMsg{Code: 'x', Text: "x"}); cmd != nil {
		t.Error("x ends it")
	}
}
