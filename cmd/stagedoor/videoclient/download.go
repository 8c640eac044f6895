package videoclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Download is a file on its way.
type Download struct {
	ID string
	// Variant is video, thumbnail or spritesheet; "": video.
	Variant string
	// Path names the file. It appears when it is whole, not before.
	Path string
	// Replace lets it take the place of a file that is there.
	Replace bool
	// Moved, if not nil, is called with the bytes received and the total, which is -1
	// if it is unknown.
	Moved func(done, total int64)
}

// ErrExists: there is a file already.
var ErrExists = errors.New("there is such a file already")

// errChanged: the content is another one than at the beginning.
var errChanged = errors.New("the content has changed during the download")

// Download fetches the content of a completed job. A line that breaks is taken up where it broke, if the gateway can do
// that, else from the front. It tells the number of bytes. The content is written beside the destination and renamed
// when it is complete, so that a file of that name is always whole. The error is ErrExists if there is one already and
// it is not to be replaced.
func (c *Client) Download(ctx context.Context, d Download) (int64, error) {
	if err := Vacant(d.Path, d.Replace); err != nil {
		return 0, err
	}
	// Beside the destination, so that it can be renamed.
	f, err := os.CreateTemp(filepath.Dir(d.Path), "."+filepath.Base(d.Path)+".part-*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name()) // gone by then if all went well
	defer f.Close()
	t := transfer{client: c, Download: d, file: f, total: -1, pause: pause{first: c.pace, most: tries}}
	if err := t.run(ctx); err != nil {
		return t.done, err
	}
	if err := f.Sync(); err != nil {
		return t.done, err
	}
	if err := f.Chmod(0o644); err != nil {
		return t.done, err
	}
	return t.done, t.publish()
}

// Vacant is an error unless a download may put its file at path.
func Vacant(path string, replace bool) error {
	info, err := os.Lstat(path)
	switch {
	case err == nil && (info.IsDir() || !replace):
		return fmt.Errorf("%s: %w", path, ErrExists)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	}
	_, err = os.Stat(filepath.Dir(path))
	return err
}

// transfer is a download over any number of connections.
type transfer struct {
	Download
	client *Client
	file   *os.File
	done   int64
	total  int64  // -1: not known
	tag    string // strong ETag of what has come so far, "" if there is none
	pause  pause
}

// publish puts the file where it was wanted. A link, unlike a renaming, does not
// replace what came there meanwhile.
func (t *transfer) publish() error {
	if t.Replace {
		return os.Rename(t.file.Name(), t.Path)
	}
	err := os.Link(t.file.Name(), t.Path)
	switch {
	case errors.Is(err, os.ErrExist):
		return fmt.Errorf("%s: %w", t.Path, ErrExists)
	case err != nil: // a file system without links
		return os.Rename(t.file.Name(), t.Path)
	}
	return nil
}

// run downloads the rest of the file until it is whole. Each piece that arrives starts the pauses from the shortest
// one again, so that a slow network is not mistaken for a broken one.
func (t *transfer) run(ctx context.Context) error {
	for {
		before := t.done
		err := t.once(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !passing(err) || errors.Is(err, errChanged):
			return err
		}
		if t.done > before {
			t.pause.reset()
		}
		if err := t.pause.sleep(ctx, err, t.client.Waits); err != nil {
			return err
		}
	}
}

// once fetches over one connection what is missing.
func (t *transfer) once(ctx context.Context) error {
	res, err := t.client.call(ctx, http.MethodGet, t.address(), nil, t.header())
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if err := t.accept(res); err != nil {
		return err
	}
	if err := t.copy(res.Body); err != nil {
		return err
	}
	if t.total >= 0 && t.done != t.total {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// address returns the path of the content.
func (t *transfer) address() string {
	address := path(t.ID) + "/content"
	if t.Variant != "" {
		address += "?" + url.Values{"variant": {t.Variant}}.Encode()
	}
	return address
}

// header returns the headers of the next attempt. If-Range lets the server send everything again if the content has
// changed since the first part.
func (t *transfer) header() http.Header {
	h := http.Header{"Accept": {"application/binary"}, "Accept-Encoding": {"identity"}}
	if t.done > 0 {
		h.Set("Range", "bytes="+strconv.FormatInt(t.done, 10)+"-")
		if t.tag != "" {
			h.Set("If-Range", t.tag)
		}
	}
	return h
}

// accept sees what a reply brings: the rest, or all of it again.
func (t *transfer) accept(res *http.Response) error {
	tag := res.Header.Get("ETag")
	if strings.HasPrefix(tag, "W/") {
		tag = ""
	}
	if res.StatusCode == http.StatusPartialContent && t.done > 0 {
		from, total, ok := readContentRange(res.Header.Get("Content-Range"))
		if !ok || from != t.done || t.total >= 0 && total >= 0 && total != t.total || t.tag != "" && tag != "" && tag != t.tag {
			return errChanged
		}
		t.total = max(t.total, total)
		return nil
	}
	if res.StatusCode != http.StatusOK {
		return errChanged // 416: it is shorter than what has come
	}
	if _, err := t.file.Seek(0, io.SeekStart); err != nil {
		return fatal{err}
	}
	if err := t.file.Truncate(0); err != nil {
		return fatal{err}
	}
	t.done, t.total, t.tag = 0, res.ContentLength, tag
	return nil
}

// readContentRange reads "bytes FROM-TO/TOTAL"; total is -1 if it is "*".
func readContentRange(text string) (from, total int64, ok bool) {
	text, ok = strings.CutPrefix(text, "bytes ")
	span, all, cut := strings.Cut(text, "/")
	first, _, dash := strings.Cut(span, "-")
	from, err := strconv.ParseInt(first, 10, 64)
	if !ok || !cut || !dash || err != nil || from < 0 {
		return 0, 0, false
	}
	if all == "*" {
		return from, -1, true
	}
	total, err = strconv.ParseInt(all, 10, 64)
	return from, total, err == nil && total > from
}

// copy writes what arrives to the file. An error of the file is fatal, one of the network is not.
func (t *transfer) copy(r io.Reader) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if _, err := t.file.Write(buf[:n]); err != nil {
				return fatal{err}
			}
			t.done += int64(n)
			if t.Moved != nil {
				t.Moved(t.done, t.total)
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// fatal is a failure of this machine: another connection does not help.
type fatal struct{ error }

// Unwrap lets callers find the cause.
func (f fatal) Unwrap() error { return f.error }
