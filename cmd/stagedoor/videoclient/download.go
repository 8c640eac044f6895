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

// Download describes the content of a job to download, and the file to save it in.
type Download struct {
	ID string
	// Variant is video, thumbnail or spritesheet; "": video.
	Variant string
	// Path names the file, which appears only when it is complete.
	Path string
	// Replace allows the download to replace an existing file.
	Replace bool
	// Moved, if not nil, is called with the bytes received and the total, which is -1
	// if it is unknown.
	Moved func(done, total int64)
}

// ErrExists says that the file of a download exists already.
var ErrExists = errors.New("there is such a file already")

// errChanged says that the content is no longer the one with which the download began.
var errChanged = errors.New("the content has changed during the download")

// Download saves the content of a completed job in a file and returns the number of bytes received. If the connection
// breaks, it goes on where it stopped, or from the beginning if the gateway cannot send a part. The content is written
// beside the destination and renamed when it is complete, so that a file of that name is always complete. The error is
// ErrExists if there is such a file already and d.Replace is not set.
func (c *Client) Download(ctx context.Context, d Download) (int64, error) {
	if err := CheckDestination(d.Path, d.Replace); err != nil {
		return 0, err
	}
	// The file is made beside the destination, so that it can be renamed.
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

// CheckDestination returns an error unless a download may put its file at path. The error is ErrExists for a file that
// exists and must not be replaced.
func CheckDestination(path string, replace bool) error {
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

// publish gives the complete file its name. Unless it may replace a file, it makes a link, which, unlike a rename, does
// not replace a file that was made there meanwhile.
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
		err := t.fetch(ctx)
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

// fetch downloads the missing part of the file over one connection.
func (t *transfer) fetch(ctx context.Context) error {
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

// accept prepares the transfer for the body of a reply, which is either the missing part or the whole content. For the
// whole content it empties the file. It returns errChanged if the part does not belong to what was received before.
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

// readContentRange parses "bytes FROM-TO/TOTAL". total is -1 if it is "*".
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

// copy writes the body of a reply to the file. An error of the file is fatal, and an error of the network is not.
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

// fatal wraps an error of this machine, so that run does not try again over another connection.
type fatal struct{ error }

// Unwrap lets callers find the cause.
func (f fatal) Unwrap() error { return f.error }
