package video

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Operation says from what a job makes its video.
type Operation string

// The operations.
const (
	Create Operation = "create" // from a prompt, perhaps with a first picture
	Remix  Operation = "remix"  // a finished video again, changed
	Edit   Operation = "edit"   // a finished or uploaded video, changed
	Extend Operation = "extend" // the same, made longer
)

// Spec describes the video that a job makes. It is stored as JSON with its job and does not
// change.
type Spec struct {
	Operation Operation `json:"operation"`
	Model     string    `json:"model"` // the provider's name of the model
	Prompt    string    `json:"prompt"`
	// Seconds is the length of the whole result, Added the length that Extend adds to its
	// source.
	Seconds    int      `json:"seconds"`
	Added      int      `json:"added,omitempty"`
	Size       Size     `json:"size"`
	Reference  *File    `json:"reference,omitempty"` // the first picture
	Characters []string `json:"characters,omitempty"`
	// Source is the video from which Remix, Edit and Extend start.
	Source *Source `json:"source,omitempty"`
	User   string  `json:"user,omitempty"`
}

// MostSeconds is the length that no video exceeds, whatever it was made from.
const MostSeconds = 120

// Size is a width and a height in pixels.
type Size struct {
	Width  int `json:"width"`
	Height int `json:"height"`
}

// String returns WIDTHxHEIGHT.
func (s Size) String() string { return fmt.Sprintf("%dx%d", s.Width, s.Height) }

// File is a file of the client that the gateway keeps until the job has been submitted.
type File struct {
	ID   string `json:"id"` // the argument of an Opener
	Name string `json:"name,omitempty"`
	Type string `json:"type"` // media type, recognised by the content
	Size int64  `json:"size"`
}

// Opener opens the content of the File with this ID. It may be called more than once.
type Opener func(id string) (io.ReadCloser, error)

// Source is a video: the result of an earlier job of the same provider, given by the provider's
// id, or an uploaded file.
type Source struct {
	ID   string `json:"id,omitempty"`
	File *File  `json:"file,omitempty"`
}

// State says how far a job has come. Completed and Failed are final.
type State string

// The states.
const (
	Queued     State = "queued"
	InProgress State = "in_progress"
	Completed  State = "completed"
	Failed     State = "failed"
)

// Final reports whether the state never changes again.
func (s State) Final() bool { return s == Completed || s == Failed }

// Status is the status of a job as its provider reports it.
type Status struct {
	// State is "" if the provider used an unknown word. The job then keeps its earlier state.
	State State
	// Progress is 0..100, or -1 if the provider reports none.
	Progress int
	// Error says why the job failed, in words that a client may read.
	Error *Fault
	// Expires is the time at which the provider deletes the content. Zero is unknown.
	Expires time.Time
	// Seconds is the length of the whole finished video, rounded up, and Size its size. Zero is
	// unknown.
	Seconds int
	Size    Size
	// PollAfter is the time after which the provider wants the next Poll. Zero is unknown.
	PollAfter time.Duration
}

// Fault is the error object of a failed job. Code and Message are safe to show.
type Fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Variant selects one of the contents of a finished job.
type Variant string

// The variants.
const (
	Video       Variant = "video"
	Thumbnail   Variant = "thumbnail"
	Spritesheet Variant = "spritesheet"
)

// Content is the content of a finished job while it is downloaded. The caller must Close it.
type Content struct {
	io.ReadCloser
	// Status is 200, 206 or 416.
	Status int
	// Header has Content-Type, Content-Length, Content-Range, ETag and Last-Modified, as far as
	// the provider sent them, and nothing else.
	Header http.Header
}

// Upstream is one provider of videos. Its methods are safe for concurrent use and return when
// ctx ends. Their errors are *upstream.Failure unless stated otherwise.
type Upstream interface {
	// Supports reports whether the provider has an operation. Submit is called only for
	// operations that it has.
	Supports(Operation) bool
	// Idempotent reports whether Submit with the key of an earlier Submit returns the job of
	// that call and makes no second one.
	Idempotent() bool
	// Submit creates a job and returns the provider's id of it.
	Submit(ctx context.Context, key string, spec *Spec, open Opener) (id string, s Status, err error)
	// Poll returns the status of a job, or ErrJobNotFound if the provider does not know it.
	Poll(ctx context.Context, id string) (Status, error)
	// Content opens a content of a completed job. byteRange is the value of a Range header or
	// "". The error is ErrJobNotFound if the content does not exist or no longer exists, and
	// ErrNoVariant if the provider does not make this variant.
	Content(ctx context.Context, id string, v Variant, byteRange string) (*Content, error)
	// Delete removes the job at the provider. Callers take ErrJobNotFound for success.
	Delete(ctx context.Context, id string) error
}

// Errors of an Upstream.
var (
	ErrJobNotFound = errors.New("the provider does not know the job")
	ErrNoVariant   = errors.New("the provider has no such content")
)
