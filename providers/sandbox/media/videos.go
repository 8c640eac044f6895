package media

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/picture"
	"stagedoor/providers/sandbox/clip"
	"stagedoor/providers/sandbox/job"
	"stagedoor/providers/video"
)

// Rules of the videos routes (wire/videos.md 2).
const (
	longestPrompt = 32_000
	standardModel = "sora-2"
	standardSize  = "720x1280"
)

var lengths = []string{"4", "8", "12", "16", "20"}

func (s *server) createVideo(w http.ResponseWriter, r *http.Request) error {
	in, err := readInput(w, r)
	defer in.close()
	if err != nil {
		return err
	}
	spec := job.Spec{Model: in.values["model"], Prompt: in.values["prompt"]}
	if spec.Seconds, err = seconds(in, "4"); err != nil {
		return err
	}
	size, ok := picture.ParseSize(or(in.values["size"], standardSize))
	if spec.Width, spec.Height = size.Width, size.Height; !ok || !clip.Fits(size.Width, size.Height) {
		return dialogue.Invalid("size", "is none that videos come in")
	}
	return s.submit(w, r, spec)
}

func or(s, standard string) string {
	if s == "" {
		return standard
	}
	return s
}

func seconds(in *input, standard string) (int, error) {
	text := or(in.values["seconds"], standard)
	if !slices.Contains(lengths, text) {
		return 0, dialogue.Invalid("seconds", "must be one of "+strings.Join(lengths, ", "))
	}
	return strconv.Atoi(text)
}

// submit begins a job and answers with how it stands.
func (s *server) submit(w http.ResponseWriter, r *http.Request, spec job.Spec) error {
	if n := utf8.RuneCountInString(spec.Prompt); n == 0 || n > longestPrompt {
		return dialogue.Invalid("prompt", "must have 1 to 32000 characters")
	}
	id, err := s.model.Submit(r.Context(), s.jobs, r.Header.Get("Idempotency-Key"), r.Header, spec)
	if err != nil {
		return err
	}
	return s.tell(w, id)
}

func (s *server) tell(w http.ResponseWriter, id string) error {
	status, err := s.jobs.Peek(id)
	if err != nil {
		return lost(err)
	}
	j := jsonw.Writer{}
	videoJob(&j, &status)
	return send(w, http.StatusOK, j.Buf)
}

// lost makes a client's error of those of an engine; faults stay what they are.
func lost(err error) error {
	refusals := []struct {
		err    error
		status int
		code   string
		param  string
	}{
		{video.ErrJobNotFound, 404, "video_not_found", ""},
		{job.ErrExpired, 404, "video_expired", ""},
		{job.ErrNotReady, 400, "video_not_ready", ""},
		{job.ErrFailed, 400, "video_failed", ""},
		{video.ErrNoVariant, 400, "invalid_value", "variant"},
	}
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			kind := dialogue.TypeInvalidRequest
			if r.status == 404 {
				kind = dialogue.TypeNotFound
			}
			return &dialogue.Error{Status: r.status, Type: kind, Param: r.param, Code: r.code, Message: err.Error()}
		}
	}
	return err
}

// videoJob writes the job object with all its keys (wire/videos.md 3).
func videoJob(w *jsonw.Writer, s *job.Status) {
	w.Object().Key("id").String(s.ID).Key("object").String("video").Key("model").String(or(s.Spec.Model, standardModel)).
		Key("status").String(string(s.State)).Key("progress").Int(int64(s.Progress)).Key("created_at").Int(s.Created.Unix())
	unix(w, "completed_at", s.Ended)
	unix(w, "expires_at", s.Expires)
	w.Key("prompt").StringOrNull(s.Spec.Prompt).Key("size").String(video.Size{Width: s.Spec.Width, Height: s.Spec.Height}.String()).
		Key("seconds").String(strconv.Itoa(s.Spec.Seconds)).Key("remixed_from_video_id").StringOrNull(s.Spec.Source)
	w.Key("error")
	if s.Error == nil {
		w.Null().End()
		return
	}
	w.Object().Key("code").String(s.Error.Code).Key("message").String(s.Error.Message).End().End()
}

func unix(w *jsonw.Writer, name string, t time.Time) {
	w.Key(name)
	if t.IsZero() {
		w.Null()
		return
	}
	w.Int(t.Unix())
}

func (s *server) retrieveVideo(w http.ResponseWriter, r *http.Request) error {
	status, err := s.jobs.Poll(r.Context(), r.PathValue("id"))
	if err != nil {
		return lost(err)
	}
	j := jsonw.Writer{}
	videoJob(&j, &status)
	return send(w, http.StatusOK, j.Buf)
}

func (s *server) listVideos(w http.ResponseWriter, r *http.Request) error {
	limit := 20
	if text := r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > 100 {
			return dialogue.Invalid("limit", "must be between 0 and 100")
		}
		limit = n
	}
	all := s.jobs.List()
	if r.URL.Query().Get("order") != "asc" {
		slices.Reverse(all)
	}
	if after := r.URL.Query().Get("after"); after != "" {
		at := slices.IndexFunc(all, func(s job.Status) bool { return s.ID == after })
		all = all[at+1:]
	}
	page := all[:min(limit, len(all))]
	j := jsonw.Writer{}
	j.Object().Key("object").String("list").Key("data").Array()
	for i := range page {
		videoJob(&j, &page[i])
	}
	j.End()
	first, last := "", ""
	if len(page) > 0 {
		first, last = page[0].ID, page[len(page)-1].ID
	}
	j.Key("first_id").StringOrNull(first).Key("last_id").StringOrNull(last).Key("has_more").Bool(len(page) < len(all)).End()
	return send(w, http.StatusOK, j.Buf)
}

func (s *server) deleteVideo(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	status, err := s.jobs.Peek(id)
	if err != nil {
		return lost(err)
	}
	if !status.State.Final() {
		return &dialogue.Error{Status: 400, Type: dialogue.TypeInvalidRequest, Code: "video_not_terminal", Message: "the video is still being made"}
	}
	if err := s.jobs.Delete(id); err != nil {
		return lost(err)
	}
	j := jsonw.Writer{}
	j.Object().Key("id").String(id).Key("object").String("video.deleted").Key("deleted").Bool(true).End()
	return send(w, http.StatusOK, j.Buf)
}

// videoContent sends an asset, or a range of it (RFC 9110 14).
func (s *server) videoContent(w http.ResponseWriter, r *http.Request) error {
	return s.content(w, r, r.PathValue("id"), video.Variant(or(r.URL.Query().Get("variant"), string(video.Video))))
}

func (s *server) content(w http.ResponseWriter, r *http.Request, id string, v video.Variant) error {
	c, err := s.jobs.Content(r.Context(), id, v)
	if err != nil {
		return lost(err)
	}
	w.Header().Set("Content-Type", c.MediaType)
	w.Header().Set("ETag", strconv.Quote(id+"-"+string(v)))
	// A reply that ends before its Content-Length has its connection closed: that
	// is what a download looks like that was ordered to break.
	http.ServeContent(w, r, "", time.Time{}, c)
	return nil
}

// source is the finished job that another one is made from.
func (s *server) source(id string) (job.Status, error) {
	status, err := s.jobs.Peek(id)
	if err != nil {
		return status, lost(err)
	}
	if status.State != video.Completed {
		return status, &dialogue.Error{Status: 400, Type: dialogue.TypeInvalidRequest, Code: "video_not_completed", Param: "video_id",
			Message: "the video is not completed"}
	}
	return status, nil
}

func (s *server) remixVideo(w http.ResponseWriter, r *http.Request) error {
	in, err := readInput(w, r)
	defer in.close()
	if err != nil {
		return err
	}
	return s.derive(w, r, in, r.PathValue("id"), 0)
}

func (s *server) editVideo(w http.ResponseWriter, r *http.Request) error {
	in, err := readInput(w, r)
	defer in.close()
	if err != nil {
		return err
	}
	return s.derive(w, r, in, in.values["video[id]"], 0)
}

func (s *server) extendVideo(w http.ResponseWriter, r *http.Request) error {
	in, err := readInput(w, r)
	defer in.close()
	if err != nil {
		return err
	}
	more, err := seconds(in, "")
	if err != nil {
		return err
	}
	return s.derive(w, r, in, in.values["video[id]"], more)
}

// derive begins a job made from another, or from an upload of its size and length.
func (s *server) derive(w http.ResponseWriter, r *http.Request, in *input, id string, more int) error {
	var spec job.Spec
	switch {
	case id != "":
		from, err := s.source(id)
		if err != nil {
			return err
		}
		spec = from.Spec
		spec.Source, spec.Faults = id, job.Faults{}
	case in.video == nil:
		return dialogue.Missing("video")
	case !clip.Fits(in.video.Width, in.video.Height):
		return dialogue.Invalid("video", "has a size that videos do not come in")
	default:
		spec.Width, spec.Height, spec.Seconds = in.video.Width, in.video.Height, in.video.Seconds()
	}
	spec.Prompt = in.values["prompt"]
	if spec.Seconds += more; spec.Seconds > clip.Longest {
		return dialogue.Invalid("seconds", "would make the video longer than 120 seconds")
	}
	return s.submit(w, r, spec)
}

func (s *server) countJobs(w http.ResponseWriter, _ *http.Request) error {
	j := jsonw.Writer{}
	j.Object().Key("jobs").Array()
	for _, c := range s.jobs.Counts() {
		j.Object().Key("id").String(c.ID).Key("idempotency_key").StringOrNull(c.Key).Key("submissions").Int(int64(c.Submissions)).
			Key("polls").Int(int64(c.Polls)).Key("downloads").Int(int64(c.Downloads)).End()
	}
	j.End().End()
	return send(w, http.StatusOK, j.Buf)
}
