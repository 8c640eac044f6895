package videocli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/charmbracelet/x/term"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/videoclient"
)

// printer shows the progress of jobs: as bars on a terminal, otherwise as one line for each change, which can be JSON.
// It is safe for concurrent use.
type printer struct {
	out, errOut io.Writer
	asJSON      bool
	screen      *screen // not nil while there are bars

	mu   sync.Mutex
	seen map[string]videoclient.Job // as last printed
}

// newPrinter returns a printer for the output of the command, which prints lines until runWithScreen shows bars.
func (a app) newPrinter(asJSON bool) *printer {
	return &printer{out: a.Out, errOut: a.ErrOut, asJSON: asJSON, seen: map[string]videoclient.Job{}}
}

// runWithScreen runs work. If the output is a terminal, it shows bars until work returns.
func (t *printer) runWithScreen(ctx context.Context, work func(context.Context) error) error {
	file, ok := t.out.(*os.File)
	if t.asJSON || !ok || !drawable(file) {
		return work(ctx)
	}
	s := newScreen(file)
	t.setScreen(s)
	defer t.setScreen(nil)
	return s.run(ctx, work)
}

// drawable reports whether file is a terminal that can move its cursor and that knows its size.
func drawable(file *os.File) bool {
	if !term.IsTerminal(file.Fd()) || os.Getenv("TERM") == "dumb" {
		return false
	}
	width, height, err := term.GetSize(file.Fd())
	return err == nil && width > 0 && height > 0
}

// setScreen makes the printer send to s, or print lines if s is nil.
func (t *printer) setScreen(s *screen) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.screen = s
}

// printJob shows the status of a job if it has changed.
func (t *printer) printJob(j *videoclient.Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, known := t.seen[j.ID]
	t.seen[j.ID] = *j
	switch {
	case t.screen != nil:
		t.screen.send(jobUpdate(*j))
	// A watcher that has reconnected gets the state once more. It is not news for the reader of the lines.
	case known && before.Status == j.Status && before.Progress == j.Progress:
	case t.asJSON:
		t.printLine(j)
	default:
		fmt.Fprintf(t.out, "%s  %-11s  %3d%%  %s\n", j.ID, cli.Printable(j.Status), j.Progress, j.Took(time.Now()))
	}
}

// printLine writes v as one line of JSON.
func (t *printer) printLine(v any) {
	if text, err := json.Marshal(v); err == nil { // of types that always can
		fmt.Fprintf(t.out, "%s\n", text)
	}
}

// printCost shows how much a job was charged.
func (t *printer) printCost(id string, micros int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.screen != nil:
		t.screen.send(jobCost{id, micros})
	case t.asJSON:
		t.printLine(struct {
			Object string `json:"object"`
			ID     string `json:"id"`
			Cost   int64  `json:"cost"`
		}{"video.cost", id, micros})
	default:
		fmt.Fprintf(t.out, "%s  cost $%s\n", id, cli.Dollars(micros))
	}
}

// printNote shows a message that is not about one job.
func (t *printer) printNote(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.screen != nil {
		t.screen.send(noteUpdate(cli.Printable(text)))
		return
	}
	fmt.Fprintln(t.errOut, "stagedoor:", cli.Printable(text))
}

// download saves a file and shows its progress on a terminal.
func (t *printer) download(ctx context.Context, client *videoclient.Client, d videoclient.Download) error {
	d.Moved = func(done, total int64) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.screen != nil {
			t.screen.send(fileUpdate{d.Path, done, total})
		}
	}
	size, err := client.Download(ctx, d)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.screen != nil:
		t.screen.send(fileUpdate{d.Path, size, size})
	case t.asJSON:
		t.printLine(struct {
			Object string `json:"object"`
			ID     string `json:"id"`
			Path   string `json:"path"`
			Bytes  int64  `json:"bytes"`
		}{"video.file", d.ID, d.Path, size})
	default:
		fmt.Fprintf(t.out, "%s  %d bytes\n", d.Path, size)
	}
	return nil
}
