package media

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"stagedoor/providers/byterange"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/sandbox/clip"
	"stagedoor/providers/sandbox/job"
	"stagedoor/providers/video"
)

// The limits of the videos routes are those of the vendor.
const longestPrompt = 32_000

var lengths = []string{"4", "8", "12", "16", "20"}

// createVideo begins a job.
func (s *server) createVideo(w http.ResponseWriter, r *http.Request, in *input) error {
	spec := job.Spec{Model: in.values["model"], Prompt: in.values["prompt"]}
	var err error
	if spec.Seconds, err = readSeconds(in, "4"); err != nil {
		return err
	}
	size, ok := picture.ParseSize(cmp.Or(in.values["size"], "720x1280"))
	if spec.Width, spec.Height = size.Width, size.Height; !ok || !clip.Fits(size.Width, size.Height) {
		return dialogue.Invalid("size", "must be a size of videos")
	}
	return s.submitVideo(w, r, spec)
}

// readSeconds returns the length that was asked for, or the vendor's standard.
func readSeconds(in *input, standard string) (int, error) {
	text := cmp.Or(in.values["seconds"], standard)
	if !slices.Contains(lengths, text) {
		return 0, dialogue.Invalid("seconds", "must be one of "+strings.Join(lengths, ", "))
	}
	return strconv.Atoi(text)
}

// submitVideo begins a job and sends its state.
func (s *server) submitVideo(w http.ResponseWriter, r *http.Request, spec job.Spec) error {
	if n := utf8.RuneCountInString(spec.Prompt); n == 0 || n > longestPrompt {
		return dialogue.Invalid("prompt", "must have 1 to 32000 characters")
	}
	id, err := s.model.Submit(r.Context(), s.jobs, r.Header.Get("Idempotency-Key"), r.Header, spec)
	if err != nil {
		return err
	}
	status, err := s.jobs.Peek(id)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, videoObject(&status))
}

// videoObject returns the job object with all its members, because clients rely on each of them. Times are in
// seconds since 1970, or null before they have come, and seconds is a string, as at the vendor.
func videoObject(s *job.Status) object {
	unix := func(t time.Time) any {
		if t.IsZero() {
			return nil
		}
		return t.Unix()
	}
	v := object{
		"id": s.ID, "object": "video", "model": cmp.Or(s.Spec.Model, "sora-2"), "status": s.State,
		"progress":   s.Progress,
		"created_at": s.Created.Unix(), "completed_at": unix(s.Ended), "expires_at": unix(s.Expires),
		"prompt": orNull(s.Spec.Prompt), "seconds": strconv.Itoa(s.Spec.Seconds),
		"size":                  video.Size{Width: s.Spec.Width, Height: s.Spec.Height}.String(),
		"remixed_from_video_id": orNull(s.Spec.Source), "error": nil,
	}
	if s.Error != nil {
		v["error"] = object{"code": s.Error.Code, "message": s.Error.Message}
	}
	return v
}

// orNull returns nil for "", which JSON has as null.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// retrieveVideo answers a poll, which the job counts.
func (s *server) retrieveVideo(w http.ResponseWriter, r *http.Request, _ *input) error {
	status, err := s.jobs.Poll(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, videoObject(&status))
}

// listVideos answers with one page of jobs. The newest jobs come first unless order=asc. An unknown after is
// taken for none, so the list begins anew.
func (s *server) listVideos(w http.ResponseWriter, r *http.Request, _ *input) error {
	query := r.URL.Query()
	limit, err := strconv.Atoi(cmp.Or(query.Get("limit"), "20"))
	if err != nil || limit < 0 || limit > 100 {
		return dialogue.Invalid("limit", "must be between 0 and 100")
	}
	all := s.jobs.List()
	if query.Get("order") != "asc" {
		slices.Reverse(all)
	}
	all = all[slices.IndexFunc(all, func(s job.Status) bool { return s.ID == query.Get("after") })+1:]
	data, first, last := []object{}, "", ""
	for i := range min(limit, len(all)) {
		data, last = append(data, videoObject(&all[i])), all[i].ID
		first = cmp.Or(first, last)
	}
	return send(w, http.StatusOK, object{"object": "list", "data": data, "first_id": orNull(first),
		"last_id": orNull(last), "has_more": len(data) < len(all)})
}

// deleteVideo deletes a finished job. The vendor refuses others.
func (s *server) deleteVideo(w http.ResponseWriter, r *http.Request, _ *input) error {
	id := r.PathValue("id")
	status, err := s.jobs.Peek(id)
	if err != nil {
		return err
	}
	if !status.State.Final() {
		return dialogue.BadRequest("video_not_terminal", "the video is not finished")
	}
	if err := s.jobs.Delete(id); err != nil {
		return err
	}
	return send(w, http.StatusOK, object{"id": id, "object": "video.deleted", "deleted": true})
}

// sendVideoContent sends the video or one of its other variants.
func (s *server) sendVideoContent(w http.ResponseWriter, r *http.Request, _ *input) error {
	return s.sendContent(w, r, r.PathValue("id"),
		video.Variant(cmp.Or(r.URL.Query().Get("variant"), string(video.Video))))
}

// sendContent sends an asset, or a range of it (RFC 9110 14). A download that was requested to break ends before its
// Content-Length, and net/http closes its connection. A Range of several parts is ignored.
func (s *server) sendContent(w http.ResponseWriter, r *http.Request, id string, v video.Variant) error {
	c, err := s.jobs.Content(r.Context(), id, v)
	if err != nil {
		return err
	}
	if strings.Contains(r.Header.Get("Range"), ",") {
		r.Header.Del("Range")
	}
	w.Header().Set("Content-Type", c.MediaType)
	w.Header().Set("ETag", strconv.Quote(id+"-"+string(v)))
	byterange.Correct(r.Header)
	http.ServeContent(w, r, "", time.Time{}, c)
	return nil
}

// deriveVideo begins a job made from another one, or from an uploaded video. An extension adds seconds to it.
// A remix has the size and the length of its source and a prompt of its own. The faults of the source are not
// inherited.
func (s *server) deriveVideo(extends bool) handler {
	return func(w http.ResponseWriter, r *http.Request, in *input) error {
		var spec job.Spec
		switch id := cmp.Or(r.PathValue("id"), in.values["video[id]"]); {
		case id != "":
			source, err := s.jobs.Peek(id)
			if err != nil {
				return err
			}
			if source.State != video.Completed {
				return dialogue.BadField("video_id", "video_not_completed", "the video is not completed")
			}
			spec = source.Spec
			spec.Source, spec.Faults = id, job.Faults{}
		case in.video == nil:
			return dialogue.Missing("video")
		case !clip.Fits(in.video.Width, in.video.Height):
			return dialogue.Invalid("video", "must have a size of videos")
		default:
			spec.Width, spec.Height, spec.Seconds = in.video.Width, in.video.Height, in.video.Seconds()
		}
		spec.Prompt = in.values["prompt"]
		if extends {
			more, err := readSeconds(in, "")
			if err != nil {
				return err
			}
			spec.Seconds += more
		}
		if spec.Seconds > clip.Longest {
			return dialogue.Invalid("seconds", "would make the video longer than 120 seconds")
		}
		return s.submitVideo(w, r, spec)
	}
}

// countJobs answers tests that count what a gateway has asked for.
func (s *server) countJobs(w http.ResponseWriter, _ *http.Request, _ *input) error {
	jobs := []object{}
	for _, c := range s.jobs.Counts() {
		jobs = append(jobs, object{"id": c.ID, "idempotency_key": orNull(c.Key), "submissions": c.Submissions,
			"polls": c.Polls, "downloads": c.Downloads})
	}
	return send(w, http.StatusOK, object{"jobs": jobs})
}

const (
	predictMethod = ":predictLongRunning"
	fileMethod    = ":download"
)

var veoSizes = map[string][2]int{
	"720p 16:9": {1280, 720}, "720p 9:16": {720, 1280}, "1080p 16:9": {1920, 1080}, "1080p 9:16": {1080, 1920},
}

// predictLongRunning begins a Veo job and sends the name of its operation.
func (s *server) predictLongRunning(w http.ResponseWriter, r *http.Request, in *input) error {
	model := strings.TrimSuffix(r.PathValue("call"), predictMethod)
	body := gjson.ParseBytes(in.raw)
	parameters := body.Get("parameters")
	spec := job.Spec{Model: model, Prompt: body.Get("instances.0.prompt").String(), Seconds: 8,
		Seed: parameters.Get("seed").Int()}
	if spec.Prompt == "" {
		return dialogue.Missing("instances[0].prompt")
	}
	resolution, aspect := parameters.Get("resolution").String(), parameters.Get("aspectRatio").String()
	size, ok := veoSizes[cmp.Or(resolution, "720p")+" "+cmp.Or(aspect, "16:9")]
	if !ok {
		return dialogue.Invalid("parameters.aspectRatio", "must be 16:9 or 9:16, of 720p or 1080p")
	}
	spec.Width, spec.Height = size[0], size[1]
	if length := parameters.Get("durationSeconds"); length.Exists() {
		if spec.Seconds = int(length.Int()); spec.Seconds < 4 || spec.Seconds > 8 {
			return dialogue.Invalid("parameters.durationSeconds", "must be between 4 and 8")
		}
	}
	id, err := s.model.Submit(r.Context(), s.jobs, r.Header.Get("Idempotency-Key"), r.Header, spec)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, object{"name": "models/" + model + "/operations/" + id})
}

// retrieveOperation sends the state of a job. A running one has nothing but a name. Moderation is no error: it filters
// the samples out of a reply that is otherwise good.
func (s *server) retrieveOperation(w http.ResponseWriter, r *http.Request, _ *input) error {
	status, err := s.jobs.Poll(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	v := object{"name": "models/" + r.PathValue("model") + "/operations/" + status.ID}
	respond := func(members object) {
		v["done"], v["response"] = true, object{"generateVideoResponse": members,
			"@type": "type.googleapis.com/google.ai.generativelanguage.v1beta.PredictLongRunningResponse"}
	}
	switch {
	case status.State == video.Completed:
		uri := "http://" + r.Host + "/v1beta/files/" + status.ID + fileMethod + "?alt=media"
		respond(object{"generatedSamples": []object{{"video": object{"uri": uri}}}})
	case status.State == video.Failed && status.Error.Code == "moderation_blocked":
		respond(object{"raiMediaFilteredCount": 1, "raiMediaFilteredReasons": []string{status.Error.Message}})
	case status.State == video.Failed:
		const internal = 13 // google.rpc.Code
		v["done"], v["error"] = true, object{"code": internal, "message": status.Error.Message}
	}
	return send(w, http.StatusOK, v)
}

// sendFile sends a video by the name of its file.
func (s *server) sendFile(w http.ResponseWriter, r *http.Request, _ *input) error {
	id, ok := strings.CutSuffix(r.PathValue("file"), fileMethod)
	if !ok {
		return video.ErrJobNotFound
	}
	return s.sendContent(w, r, id, video.Video)
}
