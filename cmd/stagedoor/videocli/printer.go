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

// teller tells what becomes of jobs: on a terminal by bars that move, else by a
// line for each change, or by JSON. Any goroutine may use it.
type teller struct {
	out, errOut io.Writer
	asJSON      bool
	screen      *screen // not nil while there are bars

	mu   sync.Mutex
	seen map[string]videoclient.Job // as last told
}

func (a app) teller(asJSON bool) *teller {
	return &teller{out: a.Out, errOut: a.ErrOut, asJSON: asJSON, seen: map[string]videoclient.Job{}}
}

// during runs work, and shows bars meanwhile where somebody can see them.
func (t *teller) during(ctx context.Context, work func(context.Context) error) error {
	file, ok := t.out.(*os.File)
	if t.asJSON || !ok || !drawable(file) {
		return work(ctx)
	}
	s := newScreen(file)
	t.set(s)
	defer t.set(nil)
	return s.during(ctx, work)
}

// drawable tells whether bars can be drawn: on a terminal that can move its
// cursor, and knows how large it is.
func drawable(file *os.File) bool {
	if !term.IsTerminal(file.Fd()) || os.Getenv("TERM") == "dumb" {
		return false
	}
	width, height, err := term.GetSize(file.Fd())
	return err == nil && width > 0 && height > 0
}

func (t *teller) set(s *screen) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.screen = s
}

// job tells how a job stands.
func (t *teller) job(j *videoclient.Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, known := t.seen[j.ID]
	t.seen[j.ID] = *j
	switch {
	case t.screen != nil:
		t.screen.send(jobMoved(*j))
	case known && before.Status == j.Status && before.Progress == j.Progress:
	case t.asJSON:
		t.line(j)
	default:
		fmt.Fprintf(t.out, "%s  %-11s  %3d%%  %s\n", j.ID, cli.Printable(j.Status), j.Progress, j.Took(time.Now()))
	}
}

// line is a document on a line of its own.
func (t *teller) line(v any) {
	if text, err := json.Marshal(v); err == nil { // of types that always can
		fmt.Fprintf(t.out, "%s\n", text)
	}
}

// cost tells what a job was charged.
func (t *teller) cost(id string, micros int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.screen != nil:
		t.screen.send(jobCost{id, micros})
	case t.asJSON:
		t.line(struct {
			Object string `json:"object"`
			ID     string `json:"id"`
			Cost   int64  `json:"cost"`
		}{"video.cost", id, micros})
	default:
		fmt.Fprintf(t.out, "%s  cost $%s\n", id, cli.Dollars(micros))
	}
}

// note tells something that is no news of a job.
func (t *teller) note(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.screen != nil {
		t.screen.send(noted(cli.Printable(text)))
		return
	}
	fmt.Fprintln(t.errOut, "stagedoor:", cli.Printable(text))
}

// download saves a file, and tells how far it is where that can be seen.
func (t *teller) download(ctx context.Context, client *videoclient.Client, d videoclient.Download) error {
	d.Moved = func(done, total int64) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.screen != nil {
			t.screen.send(bytesMoved{d.Path, done, total})
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
		t.screen.send(bytesMoved{d.Path, size, size})
	case t.asJSON:
		t.line(struct {
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
