package video

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Operation is what a job makes of what.
type Operation string

// The operations (wire/videos.md 1).
const (
	Create Operation = "create" // from a prompt, perhaps with a first picture
	Remix  Operation = "remix"  // a finished video again, changed
	Edit   Operation = "edit"   // a finished or uploaded video, changed
	Extend Operation = "extend" // the same, made longer
)

// Spec is what is asked of a provider. It is kept as JSON with its job and does
// not change.
type Spec struct {
	Operation Operation `json:"operation"`
	Model     string    `json:"model"` // the provider's name for it
	Prompt    string    `json:"prompt"`
	// Seconds is the length of the whole result, Added what Extend adds to its
	// source.
	Seconds    int      `json:"seconds"`
	Added      int      `json:"added,omitempty"`
	Size       Size     `json:"size"`
	Reference  *File    `json:"reference,omitempty"` // the first picture
	Characters []string `json:"characters,omitempty"`
	// Source is what Remix, Edit and Extend start from.
	Source *Source `json:"source,omitempty"`
	User   string  `json:"user,omitempty"`
}

// Size is in pixels.
type Size struct {
	Width  int `json:"width"`
	Height int `json:"height"`
}

// String is WIDTHxHEIGHT.
func (s Size) String() string { return fmt.Sprintf("%dx%d", s.Width, s.Height) }

// File is content kept by the gateway until the job has been submitted.
type File struct {
	ID   string `json:"id"` // for an Opener
	Name string `json:"name,omitempty"`
	Type string `json:"type"` // media type, recognised by content
	Size int64  `json:"size"`
}

// Opener opens a File's content at its front, as often as asked.
type Opener func(id string) (io.ReadCloser, error)

// Source is a video: of an earlier job of the same provider, by the provider's
// id, or an uploaded one.
type Source struct {
	ID   string `json:"id,omitempty"`
	File *File  `json:"file,omitempty"`
}

// State is how far a job is. Completed and Failed are final.
type State string

// The states (wire/videos.md 3).
const (
	Queued     State = "queued"
	InProgress State = "in_progress"
	Completed  State = "completed"
	Failed     State = "failed"
)

// Final reports whether the state never changes again.
func (s State) Final() bool { return s == Completed || s == Failed }

// Status is a job as its provider tells it.
type Status struct {
	// State is "" if the provider used a word that says nothing: the state before
	// holds.
	State State
	// Progress is 0..100, or -1 if the provider does not say.
	Progress int
	// Error is why the job failed, in the words a client may read.
	Error *Fault
	// Expires is when the content goes; zero: not said.
	Expires time.Time
	// PollAfter is how long the provider wants not to be asked; 0: not said.
	PollAfter time.Duration
}

// Fault is a failed job's error object. Code and Message are safe to show.
type Fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Variant is which content of a finished job is meant.
type Variant string

// The variants.
const (
	Video       Variant = "video"
	Thumbnail   Variant = "thumbnail"
	Spritesheet Variant = "spritesheet"
)

// Content is an asset on its way. Close must be called.
type Content struct {
	io.ReadCloser
	// Status is 200, 206 or 416.
	Status int
	// Header has Content-Type, Content-Length and Content-Range as far as known,
	// ETag and Last-Modified if the provider gave them, and nothing else.
	Header http.Header
}

// Upstream is one provider of videos. All methods may be called by any goroutine,
// end with ctx, and fail with *upstream.Failure unless said otherwise.
type Upstream interface {
	// Supports says whether an operation can be asked for. Where it can't, Submit
	// is not called.
	Supports(Operation) bool
	// Idempotent says whether Submit with the key of an earlier Submit gives its
	// job instead of another one.
	Idempotent() bool
	// Submit asks for a job and returns the provider's id for it.
	Submit(ctx context.Context, key string, spec *Spec, open Opener) (id string, s Status, err error)
	// Poll tells how a job stands; ErrJobNotFound if the provider does not know it.
	Poll(ctx context.Context, id string) (Status, error)
	// Content opens an asset of a completed job. byteRange is a Range header's
	// value or "". ErrJobNotFound if it is not there (any more), ErrNoVariant if there is
	// none of that kind.
	Content(ctx context.Context, id string, v Variant, byteRange string) (*Content, error)
	// Delete removes the job at the provider. ErrJobNotFound is success.
	Delete(ctx context.Context, id string) error
}

// Errors of an Upstream.
var (
	ErrJobNotFound = errors.New("the provider does not know the job")
	ErrNoVariant   = errors.New("the provider has no such content")
)
