package media

import (
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"

	"stagedoor/actors/videojob"
	"stagedoor/http/access"
	"stagedoor/http/media/videos"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/video"
	"stagedoor/state"
)

// Limits of bodies: a picture of 20 MB, in base64 where the body is JSON.
const (
	maxVideoJSON = 28 << 20
	maxVideoForm = 24 << 20
)

// CreateVideo is POST /v1/videos (wire/videos.md 2).
func (d *Doors) CreateVideo(w http.ResponseWriter, r *http.Request) { d.makeVideo(w, r, video.Create) }

// RemixVideo is POST /v1/videos/{id}/remix (gateway.md 4.1).
func (d *Doors) RemixVideo(w http.ResponseWriter, r *http.Request) { d.makeVideo(w, r, video.Remix) }

// EditVideo is POST /v1/videos/edits.
func (d *Doors) EditVideo(w http.ResponseWriter, r *http.Request) { d.makeVideo(w, r, video.Edit) }

// ExtendVideo is POST /v1/videos/extensions.
func (d *Doors) ExtendVideo(w http.ResponseWriter, r *http.Request) { d.makeVideo(w, r, video.Extend) }

// maker is one request for a video at its door.
type maker struct {
	visit
	ask  *videos.Ask
	once string // the client's own key
	// source is the job that it begins with, nil for a new one.
	source *state.Video
}

func (d *Doors) makeVideo(w http.ResponseWriter, r *http.Request, op video.Operation) {
	m := &maker{visit: visit{doors: d, w: w, r: r}}
	job, err := m.make(op)
	if err != nil {
		m.refuse(err)
		return
	}
	access.Note(w, slog.String("key", m.key.ID), slog.String("operation", string(op)), slog.String("model", short(job.Model)),
		slog.String("provider", job.Provider), slog.String("video", job.ID))
	_ = writeJSON(w, videos.Object(&job)) // whoever has left finds the job in the list
}

// make checks in the order of decisions.md and then begins the job.
func (m *maker) make(op video.Operation) (state.Video, error) {
	var none state.Video
	if err := m.identify(state.ScopeVideos); err != nil {
		return none, err
	}
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
	defer m.pass.Release(0) // how long a video takes is no matter of the key's concurrency
	return m.begin()
}

// read reads a body in either encoding.
func (m *maker) read(op video.Operation) (*videos.Ask, error) {
	source := m.r.PathValue("id")
	media, _, err := mime.ParseMediaType(m.r.Header.Get("Content-Type"))
	if err != nil || media != "multipart/form-data" {
		body, err := readJSON(m.w, m.r, maxVideoJSON)
		if err != nil {
			return nil, err
		}
		return videos.Check(op, body, nil, source)
	}
	form, err := ReadForm(m.w, m.r, FormLimits{Total: maxVideoForm, File: videos.FileLimit, Dir: m.doors.Scratch})
	if err != nil {
		return nil, err
	}
	ask, err := checkVideoForm(op, form, source)
	if err != nil {
		_ = form.Close() // err says more
	}
	return ask, err
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
	body, err := videos.Body(texts)
	if err != nil {
		return nil, err
	}
	return videos.Check(op, body, files, source)
}

func (m *maker) closeAsk() {
	if err := m.ask.Close(); err != nil {
		m.doors.Logger.Warn("upload not removed", "request_id", requestID(m.w), "cause", err)
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
	source, ok := m.doors.State.View().Video(m.ask.Source, m.owner())
	if !ok {
		return videoNotFound(m.ask.Source)
	}
	m.source = &source
	return m.ask.Fits(&source)
}

func (v *visit) owner() state.Owner { return state.OwnerOf(v.key.ID, v.key.User) }

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
	if err := m.keepReference(order); err != nil {
		return state.Video{}, err
	}
	job, again, err := m.doors.Videos.Create(m.r.Context(), order)
	if err != nil || again {
		m.discard(order)
	}
	if again {
		m.w.Header().Set("Idempotent-Replayed", "true")
	}
	return job, err
}

func (m *maker) order() (*videojob.Order, error) {
	asked, err := m.ask.Fingerprint()
	if err != nil {
		return nil, err
	}
	a := m.ask
	o := &videojob.Order{Plan: m.plan,
		Spec: video.Spec{Operation: a.Operation, Prompt: a.Prompt, Seconds: a.Seconds, Size: a.Size, Characters: a.Characters, User: a.User},
		Video: state.Video{Owner: m.owner(), Key: m.key.ID, Account: m.key.User, Operation: string(a.Operation), Model: m.model(), Prompt: a.Prompt,
			Size: a.Size.String(), Seconds: int64(a.Seconds), Billable: int64(a.Seconds), Once: m.once, Asked: asked}}
	if m.doors.Ledger == nil {
		o.Video.Account = ""
	}
	if m.source != nil {
		err = m.continues(o)
	}
	return o, err
}

// continues has the job begin with another, at the provider that has that one.
func (m *maker) continues(o *videojob.Order) error {
	source := m.source
	v, spec := &o.Video, &o.Spec
	if _, err := fmt.Sscanf(source.Size, "%dx%d", &spec.Size.Width, &spec.Size.Height); err != nil {
		return fmt.Errorf("video %s has size %q", source.ID, source.Size)
	}
	v.Size, v.Extensions = source.Size, source.Extensions
	spec.Source = &video.Source{ID: source.UpstreamID}
	switch m.ask.Operation {
	case video.Extend:
		spec.Added = m.ask.Seconds
		v.Seconds = source.Seconds + int64(spec.Added)
		v.Extensions++
	case video.Remix:
		v.RemixedFrom = source.ID
		fallthrough
	default:
		v.Seconds, v.Billable = source.Seconds, source.Seconds
	}
	spec.Seconds = int(v.Seconds)
	o.Plan = slices.DeleteFunc(slices.Clone(o.Plan), func(c catalog.Candidate) bool { return c.Provider.Name != source.Provider })
	if len(o.Plan) == 0 {
		return &dialogue.Error{Status: 503, Type: dialogue.TypeAPI, Code: "no_route", RetryAfter: time.Second,
			Message: "the provider that made the video is not available at the moment, try again later"}
	}
	return nil
}

// keepReference has the client's picture outlive the process.
func (m *maker) keepReference(o *videojob.Order) error {
	picture := m.ask.Reference
	if picture == nil {
		return nil
	}
	// Who is served later than a job may take is not served at all.
	const life = 24 * time.Hour
	info, err := m.doors.Content.store.Put(picture.Reader(), picture.MediaType, videos.MaxReference, m.doors.Env.Now().Add(life))
	if err != nil {
		return notKept(err)
	}
	o.Video.Files = []string{string(info.ID)}
	o.Spec.Reference = &video.File{ID: string(info.ID), Name: picture.Name, Type: picture.MediaType, Size: info.Size}
	return nil
}
