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

// topPace is how often a gateway is asked.
const topPace = time.Second

// What the dial is told.
type (
	seen struct {
		glance
		err error
	}
	acted    struct{ err error }
	askAgain struct{}
)

// dial shows a gateway on a terminal. It changes nothing by itself: what is to be done
// is a command of bubbletea.
type dial struct {
	ctx   context.Context
	gauge gauge

	now           glance
	err           error // of the last time it was asked
	note          string
	view          int    // of its sheets
	chosen        string // id of a line
	sort          int
	sure          string // the request that is ended if y is pressed
	width, height int
}

var topSorts = []string{httpflow.SortAge, httpflow.SortNew, httpflow.SortTokens}

func showDial(ctx context.Context, file *os.File, g gauge) error {
	_, err := tea.NewProgram(&dial{ctx: ctx, gauge: g, width: 80, height: 24}, tea.WithOutput(file), tea.WithContext(ctx)).Run()
	return err
}

// Init implements tea.Model.
func (d *dial) Init() tea.Cmd { return d.ask() }

// ask reads the gateway, beside the screen.
func (d *dial) ask() tea.Cmd {
	sort := topSorts[d.sort]
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(d.ctx, 5*topPace)
		defer cancel()
		r, err := d.gauge.read(ctx, sort)
		return seen{r, err}
	}
}

// act does something to the gateway, beside the screen.
func (d *dial) act(do func(context.Context) error) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(d.ctx, 5*topPace)
		defer cancel()
		return acted{do(ctx)}
	}
}

// Update implements tea.Model.
func (d *dial) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case tea.WindowSizeMsg:
		d.width, d.height = m.Width, m.Height
	case seen:
		if d.err = m.err; m.err == nil {
			d.now = m.glance
		}
		return d, tea.Tick(topPace, func(time.Time) tea.Msg { return askAgain{} })
	case askAgain:
		return d, d.ask()
	case acted:
		if m.err != nil {
			d.note = m.err.Error()
		}
	case tea.KeyPressMsg:
		return d, d.press(m.String())
	}
	return d, nil
}

func (d *dial) press(key string) tea.Cmd {
	ended := d.sure
	d.sure, d.note = "", ""
	switch key {
	case "q", "esc", "ctrl+c":
		return tea.Quit
	case "1", "2", "3":
		d.view = int(key[0] - '1')
	case "tab":
		d.view = (d.view + 1) % len(d.sheets())
	case "up", "k":
		d.choose(-1)
	case "down", "j":
		d.choose(1)
	case "s":
		d.sort = (d.sort + 1) % len(topSorts)
		d.note = "sorted by " + topSorts[d.sort]
	case "e":
		if id := d.line(); id != "" && d.view == 0 {
			d.sure = id
		}
	case "y":
		if ended != "" {
			d.note = "ending " + ended
			return d.act(func(ctx context.Context) error { return d.gauge.end(ctx, ended) })
		}
	case "p":
		return d.pause()
	}
	return nil
}

// pause pauses the provider that is chosen, or lets it go on.
func (d *dial) pause() tea.Cmd {
	at := slices.IndexFunc(d.now.Providers, func(p httpflow.Provider) bool { return p.Name == d.line() })
	if d.view != 1 || at < 0 {
		return nil
	}
	p := d.now.Providers[at]
	return d.act(func(ctx context.Context) error { return d.gauge.setPaused(ctx, p.Name, !p.Paused) })
}

func (d *dial) sheets() []topSheet {
	return []topSheet{d.now.requests(), d.now.providers(), d.now.actors()}
}

// line is the id of the line that is chosen: another one, if that is gone.
func (d *dial) line() string {
	ids := d.sheets()[d.view].ids
	if len(ids) == 0 {
		return ""
	}
	if !slices.Contains(ids, d.chosen) {
		d.chosen = ids[0]
	}
	return d.chosen
}

func (d *dial) choose(by int) {
	ids := d.sheets()[d.view].ids
	if d.line() == "" {
		return
	}
	d.chosen = ids[min(max(slices.Index(ids, d.chosen)+by, 0), len(ids)-1)]
}

// View implements tea.Model.
func (d *dial) View() tea.View {
	v := tea.NewView(d.draw())
	v.AltScreen = true
	return v
}

const (
	reverse = "\x1b[7m"
	bold    = "\x1b[1m"
	plain   = "\x1b[0m"
)

// draw writes as many lines as the screen has.
func (d *dial) draw() string {
	sheets := d.sheets()
	s := sheets[d.view]
	width := max(d.width, 2)
	var tabs []string
	for i := range sheets {
		name := fmt.Sprintf(" %d %s ", i+1, sheets[i].name)
		if i == d.view {
			name = reverse + name + plain
		}
		tabs = append(tabs, name)
	}
	lines := []string{strings.Join(tabs, " "), cli.Shorten(s.sums, width), ""}
	head, rows := s.lines()
	if len(rows) == 0 {
		lines = append(lines, s.none)
	} else {
		lines = append(lines, bold+cli.Shorten(head, width)+plain)
		lines = append(lines, d.part(rows, slices.Index(s.ids, d.line()), max(d.height-len(lines)-3, 1), width)...)
	}
	return strings.Join(append(lines, "", d.foot(width)), "\n")
}

// part is the part of the rows around the chosen one that there is room for.
func (d *dial) part(rows []string, chosen, room, width int) []string {
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

func (d *dial) foot(width int) string {
	text := [...]string{"e end  s sort  tab next  q leave", "p pause or resume  tab next  q leave", "tab next  q leave"}[d.view]
	switch {
	case d.sure != "":
		text = "end " + d.sure + "? y ends it, any other key does not"
	case d.err != nil:
		text = "the gateway does not answer: " + d.err.Error()
	case d.note != "":
		text = d.note
	}
	return cli.Shorten(cli.Printable(text), width)
}
