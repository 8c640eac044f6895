package media

import (
	"log/slog"
	"net/http"

	"stagedoor/actors/recording"
	"stagedoor/http/accesslog"
	"stagedoor/http/attach"
	"stagedoor/http/media/videos"
	"stagedoor/providers/dialogue"
	videoshape "stagedoor/providers/shapes/videos"
	"stagedoor/providers/video"
	"stagedoor/state"
	"stagedoor/state/work"
)

// These limits apply to bodies, which have a picture of up to 20 MB, in base64 if the body is JSON, or a
// video.
const (
	maxVideoJSON  = 28 << 20
	maxVideoForm  = 24 << 20
	maxUploadForm = videos.MaxUpload + 4<<20
)

// CreateVideo serves POST /v1/videos.
func (hs *Handlers) CreateVideo(w http.ResponseWriter, r *http.Request) {
	hs.makeVideo(w, r, video.Create)
}

// RemixVideo serves POST /v1/videos/{id}/remix.
func (hs *Handlers) RemixVideo(w http.ResponseWriter, r *http.Request) {
	hs.makeVideo(w, r, video.Remix)
}

// EditVideo serves POST /v1/videos/edits.
func (hs *Handlers) EditVideo(w http.ResponseWriter, r *http.Request) { hs.makeVideo(w, r, video.Edit) }

// ExtendVideo serves POST /v1/videos/extensions.
func (hs *Handlers) ExtendVideo(w http.ResponseWriter, r *http.Request) {
	hs.makeVideo(w, r, video.Extend)
}

// maker is the context of a request that creates a video job. ask is nil until the body was read and then
// owns the uploads, which closeAsk gives back.
type maker struct {
	requestContext
	ask  *videos.Ask
	once string // the client's idempotency key, or ""
	// source is the job of the video to change or extend, or nil for a new video.
	source *work.Video
}

// makeVideo creates a job of an operation and answers with it. The reply comes when the provider has accepted
// the job, not when the video is made.
func (hs *Handlers) makeVideo(w http.ResponseWriter, r *http.Request, op video.Operation) {
	m := &maker{requestContext: requestContext{handlers: hs, w: w, r: r, makes: "videos"}}
	defer m.endRecording()
	job, err := m.make(op)
	if err != nil {
		if m.ask != nil {
			m.asked = m.ask.Model
		}
		m.refuse(err)
		return
	}
	recording.From(m.r.Context()).SetID(job.ID) // the log of requests has the job
	accesslog.Note(m.w, slog.String("key", m.key.ID), slog.String("operation", string(op)),
		slog.String("model", short(job.Model)), slog.String("provider", job.Provider), slog.String("video", job.ID))
	_ = writeJSON(m.w, videos.Object(&job)) // a client that has left finds the job in the list
}

// make runs the checks in the order of decisions.md and then creates the job.
func (m *maker) make(op video.Operation) (work.Video, error) {
	var none work.Video
	if err := m.identify(videoshape.Descriptor.Scope); err != nil {
		return none, err
	}
	if err := m.enter(); err != nil {
		return none, err
	}
	defer m.pass.Release(0) // the key's concurrency does not count the job itself
	var err error
	if m.ask, err = m.read(op); err != nil {
		return none, err
	}
	defer m.closeAsk()
	if m.once, err = attach.Key(m.r); err != nil {
		return none, err
	}
	if err := m.findSource(); err != nil {
		return none, err
	}
	if err := m.admitTo(m.model(), len(m.ask.Prompt)/4+1); err != nil {
		return none, err
	}
	return m.createJob()
}

// read reads a body, as JSON or as a form.
func (m *maker) read(op video.Operation) (*videos.Ask, error) {
	source := m.r.PathValue("id")
	limits := m.limits(op)
	sent, err := isForm(m.w, m.r, max(limits.Total, maxVideoJSON))
	if err != nil {
		return nil, err
	}
	if !sent {
		body, err := readJSON(m.w, m.r, maxVideoJSON, videos.MemberNames)
		if err != nil {
			return nil, err
		}
		return videos.Check(op, videos.Sent{Body: body}, source)
	}
	form, err := ReadForm(m.w, m.r, limits)
	if err != nil {
		return nil, err
	}
	ask, err := checkVideoForm(op, form, source)
	if err != nil {
		_ = form.Close() // err is the first error
	}
	return ask, err
}

// limits returns the limits of a form. A new video may have a picture, and an edit or extension a video.
func (m *maker) limits(op video.Operation) FormLimits {
	l := FormLimits{
		Total: maxVideoForm, File: videos.FileLimit, Dir: m.handlers.Scratch, Names: videos.MemberNames,
	}
	if op == video.Edit || op == video.Extend {
		l.Total, l.Video = maxUploadForm, videos.UploadLimit
	}
	return l
}

// checkVideoForm checks a form by the rules for JSON bodies, so that both have the same errors.
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

// closeAsk removes the uploads of a request. A failure is only logged, because the request has its answer.
func (m *maker) closeAsk() {
	if err := m.ask.Close(); err != nil {
		m.handlers.Logger.Warn("upload not removed", "request_id", accesslog.RequestID(m.w), "cause", err)
	}
}

// findSource finds the job whose video the request changes or extends.
func (m *maker) findSource() error {
	if m.ask.Source == "" {
		return nil
	}
	source, ok := work.FindVideo(m.handlers.State.View(), m.ask.Source, m.owner())
	if !ok {
		return dialogue.VideoNotFound(m.ask.Source).About(m.ask.SourceField)
	}
	m.source = &source
	return m.ask.Fits(&source)
}

func (rc *requestContext) owner() state.Owner { return state.OwnerOf(rc.key.ID, rc.key.User) }

// model returns the model of the new job. A job that continues another one uses its model.
func (m *maker) model() string {
	if m.source != nil {
		return m.source.Model
	}
	return m.ask.Model
}

// createJob stores the files of the request and creates the job. The files are stored before the job, so a
// job never lacks its files. Those of a job that was refused, or that existed already, are removed again.
func (m *maker) createJob() (work.Video, error) {
	order, err := m.newJob()
	if err != nil {
		return work.Video{}, err
	}
	if err := m.keepFiles(order); err != nil {
		return work.Video{}, err
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
