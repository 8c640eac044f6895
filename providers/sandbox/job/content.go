package job

import (
	"bytes"
	"context"
	"io"

	"stagedoor/providers/sandbox/clip"
	"stagedoor/providers/video"
)

// assets make the variants of a job's content.
var assets = map[video.Variant]struct {
	mediaType string
	make      func(clip.Spec) ([]byte, error)
}{
	video.Video:       {"video/mp4", clip.Video},
	video.Thumbnail:   {"image/webp", clip.Thumbnail},
	video.Spritesheet: {"image/jpeg", clip.Spritesheet},
}

// Content is an asset of a finished job, the same bytes every time. Reading may
// fail with ErrCut if that was ordered.
type Content struct {
	io.ReadSeeker
	MediaType string
}

// Content opens an asset. The error is ErrNotReady, ErrFailed, ErrExpired,
// video.ErrJobNotFound or video.ErrNoVariant.
func (e *Engine) Content(ctx context.Context, id string, v video.Variant) (*Content, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	t, s, err := e.look(id)
	if err != nil {
		return nil, err
	}
	asset, known := assets[v]
	switch {
	case !known:
		return nil, video.ErrNoVariant
	case s.State == video.Failed:
		return nil, ErrFailed
	case s.State != video.Completed:
		return nil, ErrNotReady
	case !e.Now().Before(s.Expires):
		return nil, ErrExpired
	}
	data, err := asset.make(t.clip)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	n := e.books.note(id, func(c *Counts) *int { return &c.Downloads })
	e.mu.Unlock()
	c := &Content{ReadSeeker: bytes.NewReader(data), MediaType: asset.mediaType}
	if n <= int(t.cutGet) {
		c.ReadSeeker = &torn{Reader: bytes.NewReader(data), at: int64(len(data) / 2)}
	}
	return c, nil
}

// torn cannot be read beyond a place.
type torn struct {
	*bytes.Reader
	at int64
}

func (t *torn) Read(p []byte) (int, error) {
	left := t.at - (t.Size() - int64(t.Len()))
	if left <= 0 {
		return 0, ErrCut
	}
	return t.Reader.Read(p[:min(int64(len(p)), left)])
}

// WriteTo keeps io.Copy from going around Read.
func (t *torn) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, struct{ io.Reader }{t}) }
