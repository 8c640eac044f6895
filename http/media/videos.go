package media

import (
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"strconv"

	"stagedoor/http/accesslog"
	"stagedoor/http/media/videos"
	"stagedoor/providers/dialogue"
	videoshape "stagedoor/providers/shapes/videos"
	"stagedoor/providers/video"
	"stagedoor/state"
)

// Limits of bodies: a picture of 20 MB, in base64 where the body is JSON, or a
// video.
const (
	maxVideoJSON  = 28 << 20
	maxVideoForm  = 24 << 20
	maxUploadForm = videos.MaxUpload + 4<<20
)

// CreateVideo is POST /v1/videos (wire/videos.md 2).
func (hs *Handlers) CreateVideo(w http.ResponseWriter, r *http.Request) {
	hs.makeVideo(w, r, video.Create)
}

// RemixVideo is POST /v1/videos/{id}/remix (gateway.md 4.1).
func (hs *Handlers) RemixVideo(w http.ResponseWriter, r *http.Request) {
	hs.makeVideo(w, r, video.Remix)
}

// EditVideo is POST /v1/videos/edits.
func (hs *Handlers) EditVideo(w http.ResponseWriter, r *http.Request) { hs.makeVideo(w, r, video.Edit) }

// ExtendVideo is POST /v1/videos/extensions.
func (hs *Handlers) ExtendVideo(w http.ResponseWriter, r *http.Request) {
	hs.makeVideo(w, r, video.Extend)
}

// maker is one request for a video at its door.
type maker struct {
	requestContext
	ask  *videos.Ask
	once string // the client's own key
	// source is the job that it begins with, nil for a new one.
	source *state.Video
}

func (hs *Handlers) makeVideo(w http.ResponseWriter, r *http.Request, op video.Operation) {
	m := &maker{requestContext: requestContext{handlers: hs, w: w, r: r}}
	job, err := m.make(op)
	if err != nil {
		m.refuse(err)
		return
	}
	accesslog.Note(w, slog.String("key", m.key.ID), slog.String("operation", string(op)), slog.String("model", short(job.Model)),
		slog.String("provider", job.Provider), slog.String("video", job.ID))
	_ = writeJSON(w, videos.Object(&job)) // whoever has left finds the job in the list
}

// make checks in the order of decisions.md and then begins the job.
func (m *maker) make(op video.Operation) (state.Video, error) {
	var none state.Video
	if err := m.identify(videoshape.Descriptor.Scope); err != nil {
		return none, err
	}
	if err := m.enter(); err != nil {
		return none, err
	}
	defer m.pass.Release(0) // how long a video takes is no matter of the key's concurrency
	var err error
	if m.ask, err = m.read(op); err != nil {
		return none, err
	}
	defer m.closeAsk()
	if m.once, err = onceOf(m.r); err != nil {
		return none, err
	}
	if err := m.begins(); err != nil {
		return none, err
	}
	if err := m.admitTo(m.model(), len(m.ask.Prompt)/4+1); err != nil {
		return none, err
	}
	return m.begin()
}

// read reads a body in either encoding.
func (m *maker) read(op video.Operation) (*videos.Ask, error) {
	source := m.r.PathValue("id")
	media, _, err := mime.ParseMediaType(m.r.Header.Get("Content-Type"))
	if err != nil || media != "multipart/form-data" {
		body, err := readJSON(m.w, m.r, maxVideoJSON, videos.MemberNames)
		if err != nil {
			return nil, err
		}
		return videos.Check(op, videos.Sent{Body: body}, source)
	}
	form, err := ReadForm(m.w, m.r, m.limits(op))
	if err != nil {
		return nil, err
	}
	ask, err := checkVideoForm(op, form, source)
	if err != nil {
		_ = form.Close() // err says more
	}
	return ask, err
}

// limits are a form's: a new video begins with a picture at most, an edit with a
// video.
func (m *maker) limits(op video.Operation) FormLimits {
	l := FormLimits{
		Total: maxVideoForm, File: videos.FileLimit, Dir: m.handlers.Scratch, Names: videos.MemberNames,
	}
	if op == video.Edit || op == video.Extend {
		l.Total, l.Video = maxUploadForm, videos.UploadLimit
	}
	return l
}

func checkVideoForm(op video.Operation, form *Form, source string) (*videos.Ask, error) {
	texts := make([]videos.Text, len(form.Fields))
	for i, f := range form.Fields {
		texts[i] = videos.Text(f)
	}
	files := make([]videos.File, len(form.Files))
	for i, f := range form.Files {
		files[i] = videos.File(f)
	}
	uploads := make([]videos.Upload, len(form.Videos))
	for i, f := range form.Videos {
		uploads[i] = videos.Upload(f)
	}
	body, err := videos.Body(texts)
	if err != nil {
		return nil, err
	}
	return videos.Check(op, videos.Sent{Body: body, Pictures: files, Videos: uploads}, source)
}

func (m *maker) closeAsk() {
	if err := m.ask.Close(); err != nil {
		m.handlers.Logger.Warn("upload not removed", "request_id", accesslog.RequestID(m.w), "cause", err)
	}
}

// onceOf is the client's own key of a request, "" if it sent none.
func onceOf(r *http.Request) (string, error) {
	const most = 255
	once := r.Header.Get("Idempotency-Key")
	for _, c := range []byte(once) {
		if c < ' ' || c > '~' {
			return "", dialogue.Invalid("Idempotency-Key", "must be printable ASCII")
		}
	}
	if len(once) > most {
		return "", dialogue.Invalid("Idempotency-Key", fmt.Sprintf("must not be longer than %d characters", most))
	}
	return once, nil
}

// begins finds the job that this one begins with.
func (m *maker) begins() error {
	if m.ask.Source == "" {
		return nil
	}
	source, ok := m.handlers.State.View().Video(m.ask.Source, m.owner())
	if !ok {
		return videoNotFound(m.ask.Source)
	}
	m.source = &source
	return m.ask.Fits(&source)
}

func (rc *requestContext) owner() state.Owner { return state.OwnerOf(rc.key.ID, rc.key.User) }

func videoNotFound(id string) *dialogue.Error {
	return &dialogue.Error{Status: http.StatusNotFound, Type: dialogue.TypeNotFound, Code: "video_not_found", Param: "video_id",
		Message: "there is no video " + strconv.QuoteToASCII(short(id))}
}

func (m *maker) model() string {
	if m.source != nil {
		return m.source.Model
	}
	return m.ask.Model
}

// begin hands the job over.
func (m *maker) begin() (state.Video, error) {
	order, err := m.order()
	if err != nil {
		return state.Video{}, err
	}
	if err := m.keepFiles(order); err != nil {
		return state.Video{}, err
	}
	job, again, err := m.handlers.Videos.Create(m.r.Context(), order)
	if err != nil || again {
		m.discard(order)
	}
	if again {
		m.w.Header().Set("Idempotent-Replayed", "true")
	}
	return job, err
}
