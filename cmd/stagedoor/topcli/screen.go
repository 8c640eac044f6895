package topcli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"stagedoor/cmd/stagedoor/cli"
	httpflow "stagedoor/http/flow"
)

// refreshInterval is the time between two snapshots.
const refreshInterval = time.Second

// These are the messages that the screen receives.
type (
	update struct {
		snapshot
		err error
	}
	actionDone struct{ err error }
	refresh    struct{}
)

// screen shows a gateway on a terminal. It changes nothing by itself: what is to be done
// is a command of bubbletea.
type screen struct {
	ctx    context.Context
	client client

	now           snapshot
	err           error // of the last snapshot
	note          string
	view          int    // of its tables
	chosen        string // id of a line
	sort          int
	confirming    string // the request that is ended if y is pressed
	width, height int
}

var sortOrders = []string{httpflow.SortAge, httpflow.SortNew, httpflow.SortTokens}

// showScreen shows a gateway on a terminal until the user leaves or ctx ends.
func showScreen(ctx context.Context, file *os.File, g client) error {
	_, err := tea.NewProgram(&screen{ctx: ctx, client: g, width: 80, height: 24}, tea.WithOutput(file),
		tea.WithContext(ctx)).
		Run()
	return err
}

// Init implements tea.Model.
func (d *screen) Init() tea.Cmd { return d.load() }

// load reads a snapshot without blocking the screen.
func (d *screen) load() tea.Cmd {
	sort := sortOrders[d.sort]
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(d.ctx, 5*refreshInterval)
		defer cancel()
		r, err := d.client.read(ctx, sort)
		return update{r, err}
	}
}

// run changes the gateway without blocking the screen.
func (d *screen) run(do func(context.Context) error) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(d.ctx, 5*refreshInterval)
		defer cancel()
		return actionDone{do(ctx)}
	}
}

// Update implements tea.Model.
func (d *screen) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case tea.WindowSizeMsg:
		d.width, d.height = m.Width, m.Height
	case update:
		if d.err = m.err; m.err == nil {
			// After an error the last good snapshot stays on the screen, and the footer says that it is old.
			d.now = m.snapshot
		}
		return d, tea.Tick(refreshInterval, func(time.Time) tea.Msg { return refresh{} })
	case refresh:
		return d, d.load()
	case actionDone:
		if m.err != nil {
			d.note = m.err.Error()
		}
	case tea.KeyPressMsg:
		return d, d.press(m.String())
	}
	return d, nil
}

// press handles a key. It clears the note and a pending question first, so that any key other than y withdraws the
// question of whether a request is to be ended.
func (d *screen) press(key string) tea.Cmd {
	ended := d.confirming
	d.confirming, d.note = "", ""
	switch key {
	case "q", "esc", "ctrl+c":
		return tea.Quit
	case "1", "2", "3":
		d.view = int(key[0] - '1')
	case "tab":
		d.view = (d.view + 1) % len(d.tables())
	case "up", "k":
		d.choose(-1)
	case "down", "j":
		d.choose(1)
	case "s":
		d.sort = (d.sort + 1) % len(sortOrders)
		d.note = "sorted by " + sortOrders[d.sort]
	case "e":
		if id := d.chosenID(); id != "" && d.view == 0 {
			d.confirming = id
		}
	case "y":
		if ended != "" {
			d.note = "ending " + ended
			return d.run(func(ctx context.Context) error { return d.client.endRequest(ctx, ended) })
		}
	case "p":
		return d.pause()
	}
	return nil
}

// pause pauses or resumes the chosen provider.
func (d *screen) pause() tea.Cmd {
	at := slices.IndexFunc(d.now.Providers, func(p httpflow.Provider) bool { return p.Name == d.chosenID() })
	if d.view != 1 || at < 0 {
		return nil
	}
	p := d.now.Providers[at]
	return d.run(func(ctx context.Context) error { return d.client.setPaused(ctx, p.Name, !p.Paused) })
}

// tables returns the views in the order of their number keys. They are made anew from the snapshot, which is cheap at
// one draw a second.
func (d *screen) tables() []table {
	return []table{d.now.requests(), d.now.providers(), d.now.actors()}
}

// chosenID returns the id of the chosen line. It falls back to the first line if that one has gone.
func (d *screen) chosenID() string {
	ids := d.tables()[d.view].ids
	if len(ids) == 0 {
		return ""
	}
	if !slices.Contains(ids, d.chosen) {
		d.chosen = ids[0]
	}
	return d.chosen
}

// choose moves the choice by a number of lines and stops at both ends.
func (d *screen) choose(by int) {
	ids := d.tables()[d.view].ids
	if d.chosenID() == "" {
		return
	}
	d.chosen = ids[min(max(slices.Index(ids, d.chosen)+by, 0), len(ids)-1)]
}

// View implements tea.Model.
func (d *screen) View() tea.View {
	v := tea.NewView(d.draw())
	v.AltScreen = true
	return v
}

const (
	reverse = "\x1b[7m"
	bold    = "\x1b[1m"
	plain   = "\x1b[0m"
)

// draw returns as many lines as fit on the screen.
func (d *screen) draw() string {
	tables := d.tables()
	s := tables[d.view]
	width := max(d.width, 2)
	var tabs []string
	for i := range tables {
		name := fmt.Sprintf(" %d %s ", i+1, tables[i].name)
		if i == d.view {
			name = reverse + name + plain
		}
		tabs = append(tabs, name)
	}
	lines := []string{strings.Join(tabs, " "), cli.Shorten(s.summary, width), ""}
	head, rows := s.lines()
	if len(rows) == 0 {
		lines = append(lines, s.none)
	} else {
		lines = append(lines, bold+cli.Shorten(head, width)+plain)
		lines = append(lines, d.visibleRows(rows, slices.Index(s.ids, d.chosenID()),
			max(d.height-len(lines)-3, 1), width)...)
	}
	return strings.Join(append(lines, "", d.footer(width)), "\n")
}

// visibleRows returns the rows around the chosen one that fit on the screen. The chosen row stays near the middle, so
// that the rows before and after it are in view.
func (d *screen) visibleRows(rows []string, chosen, room, width int) []string {
	from := min(max(chosen-room/2, 0), max(len(rows)-room, 0))
	var out []string
	for i, row := range rows[from:min(from+room, len(rows))] {
		row = cli.Shorten(row, width)
		if from+i == chosen {
			row = reverse + row + plain
		}
		out = append(out, row)
	}
	return out
}

// footer returns the last line: a pending question, else an error of the last snapshot, else a note, else the keys.
func (d *screen) footer(width int) string {
	text := [...]string{"e end  s sort  tab next  q leave", "p pause or resume  tab next  q leave",
		"tab next  q leave"}[d.view]
	switch {
	case d.confirming != "":
		text = "end " + d.confirming + "? y ends it, any other key does not"
	case d.err != nil:
		text = "the gateway does not answer: " + d.err.Error()
	case d.note != "":
		text = d.note
	}
	return cli.Shorten(cli.Printable(text), width)
}
