package videocli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"
	"github.com/sourcegraph/conc"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/videoclient"
)

// screen shows jobs as bars on a terminal. A bubbletea program draws it and receives changes as messages.
type screen struct{ program *tea.Program }

// These are the messages that the program receives.
type (
	jobUpdate videoclient.Job
	jobCost   struct {
		id     string
		micros int64
	}
	fileUpdate struct {
		path        string
		done, total int64
	}
	noteUpdate string
	tick       time.Time
	workDone   struct{}
)

// newScreen returns a screen on a terminal. It does not handle signals, because withClient does and cancels the work.
func newScreen(file *os.File) *screen {
	options := []tea.ProgramOption{tea.WithOutput(file), tea.WithoutSignalHandler()}
	if !term.IsTerminal(os.Stdin.Fd()) {
		options = append(options, tea.WithInput(nil)) // standard input is not a keyboard
	}
	return &screen{tea.NewProgram(&bars{width: 80, height: 24, now: time.Now()}, options...)}
}

// send passes a message to the program. It does not block after the program has ended.
func (s *screen) send(m tea.Msg) { s.program.Send(m) }

// run shows the bars until work returns or the user presses a key to quit, which cancels the context of work.
func (s *screen) run(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var worker conc.WaitGroup
	var failure error
	worker.Go(func() {
		defer s.send(workDone{}) // also if the work panics
		failure = work(ctx)
	})
	_, err := s.program.Run()
	cancel()
	worker.Wait()
	return errors.Join(failure, err)
}

// bars is the model of the screen.
type bars struct {
	jobs          []bar
	file          *fileUpdate
	note          string
	width, height int
	now           time.Time
}

// bar is one line of the screen, with its job.
type bar struct {
	videoclient.Job
	cost *int64
}

// Init implements tea.Model.
func (b *bars) Init() tea.Cmd { return everySecond() }

// everySecond returns the command that makes one tick. Update asks for the next one, so ticks end with the program.
func everySecond() tea.Cmd {
	return tea.Tick(time.Second, func(t time.Time) tea.Msg { return tick(t) })
}

// Update implements tea.Model.
func (b *bars) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case workDone:
		return b, tea.Quit
	case tea.KeyPressMsg:
		if key := m.String(); key == "q" || key == "ctrl+c" || key == "esc" {
			return b, tea.Quit
		}
	case tea.WindowSizeMsg:
		b.width, b.height = m.Width, m.Height
	case tick:
		b.now = time.Time(m)
		return b, everySecond()
	case jobUpdate:
		b.line(m.ID).Job = videoclient.Job(m)
		b.note = ""
	case jobCost:
		b.line(m.id).cost = &m.micros
	case fileUpdate:
		b.file = &m
	case noteUpdate:
		b.note = string(m)
	}
	return b, nil
}

// line returns the bar of a job and adds one if there is none.
func (b *bars) line(id string) *bar {
	for i := range b.jobs {
		if b.jobs[i].ID == id {
			return &b.jobs[i]
		}
	}
	b.jobs = append(b.jobs, bar{Job: videoclient.Job{ID: id}})
	return &b.jobs[len(b.jobs)-1]
}

// View implements tea.Model.
func (b *bars) View() tea.View { return tea.NewView(b.draw()) }

// draw returns the lines. If they do not fit on the screen, finished jobs are left out first.
func (b *bars) draw() string {
	var lines []string
	for _, j := range b.fitting() {
		lines = append(lines, b.jobLine(j))
	}
	if hidden := len(b.jobs) - len(lines); hidden > 0 {
		lines = append(lines, fmt.Sprintf("and %s", cli.Count(hidden, "more job")))
	}
	if f := b.file; f != nil {
		lines = append(lines, b.fileLine(f))
	}
	if b.note != "" {
		lines = append(lines, cli.Shorten(b.note, max(b.width, 2)))
	}
	return strings.Join(lines, "\n") + "\n"
}

// fitting returns the jobs that have room on the screen, unfinished ones first, then finished ones, each in their
// order.
func (b *bars) fitting() []*bar {
	const others = 4 // the count of hidden jobs, the file, the note, and where the cursor is
	room := max(b.height-others, 1)
	var shown []*bar
	for ended := range 2 {
		for i := range b.jobs {
			j := &b.jobs[i]
			if j.Final() == (ended == 1) && len(shown) < room {
				shown = append(shown, j)
			}
		}
	}
	return shown
}

const (
	barWidth    = 24
	statusWidth = 11 // in_progress
	promptWidth = 40
)

// jobLine returns "bar  33%  in_progress  0:12  prompt  video_..", cut to the width of the screen.
func (b *bars) jobLine(j *bar) string {
	line := fmt.Sprintf("%s %3d%%  %-*s  %s", drawBar(j.Progress, 100), j.Progress, statusWidth,
		cli.Printable(j.Status), clock(j.Took(b.now)))
	if j.cost != nil {
		line += "  $" + cli.Dollars(*j.cost)
	}
	if j.Fault != nil {
		line += "  " + cli.Printable(j.Fault.Message)
	} else if text := j.Text(); text != "" {
		line += "  " + cli.Printable(cli.Shorten(text, promptWidth))
	}
	line += "  " + j.ID
	return cli.Shorten(line, max(b.width, 2))
}

// fileLine returns the line of a download. A download whose length is not known has a line in place of a bar.
func (b *bars) fileLine(f *fileUpdate) string {
	line := fmt.Sprintf("%s %d bytes  %s", strings.Repeat("─", barWidth), f.done, f.path)
	if f.total > 0 {
		line = fmt.Sprintf("%s %3d%%  %d of %d bytes  %s", drawBar(f.done, f.total), f.done*100/f.total, f.done,
			f.total, f.path)
	}
	return cli.Shorten(line, max(b.width, 2))
}

// drawBar returns a bar that grows by eighths of a character.
func drawBar[N int | int64](done, total N) string {
	const parts = 8
	filled := int(min(max(done, 0), total) * barWidth * parts / total)
	text := strings.Repeat("█", filled/parts)
	if rest := filled % parts; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text + strings.Repeat("░", barWidth-len([]rune(text)))
}

// clock formats a duration as minutes and seconds.
func clock(d time.Duration) string {
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}
