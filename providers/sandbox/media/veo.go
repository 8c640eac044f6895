package media

import (
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/sandbox/job"
	"stagedoor/providers/video"
)

// veoSizes are what Veo makes of resolution and aspect ratio.
var veoSizes = map[string][2]int{
	"720p 16:9": {1280, 720}, "720p 9:16": {720, 1280}, "1080p 16:9": {1920, 1080}, "1080p 9:16": {1080, 1920},
}

const veoSeconds = 8

// predictLongRunning begins a Veo job and names the operation to ask for.
func (s *server) predictLongRunning(w http.ResponseWriter, r *http.Request, model string, body []byte) error {
	instance, parameters := gjson.GetBytes(body, "instances.0"), gjson.GetBytes(body, "parameters")
	spec := job.Spec{Model: model, Prompt: instance.Get("prompt").String(), Seconds: veoSeconds, Seed: parameters.Get("seed").Int()}
	if spec.Prompt == "" {
		return dialogue.Missing("instances[0].prompt")
	}
	size, ok := veoSizes[or(parameters.Get("resolution").String(), "720p")+" "+or(parameters.Get("aspectRatio").String(), "16:9")]
	if !ok {
		return dialogue.Invalid("parameters.aspectRatio", "must be 16:9 or 9:16, of 720p or 1080p")
	}
	spec.Width, spec.Height = size[0], size[1]
	if length := parameters.Get("durationSeconds"); length.Exists() {
		spec.Seconds = int(length.Int())
		if spec.Seconds < 4 || spec.Seconds > 8 {
			return dialogue.Invalid("parameters.durationSeconds", "must be between 4 and 8")
		}
	}
	id, err := s.model.Submit(r.Context(), s.jobs, r.Header.Get("Idempotency-Key"), r.Header, spec)
	if err != nil {
		return err
	}
	j := jsonw.Writer{}
	j.Object().Key("name").String("models/" + model + "/operations/" + id).End()
	return send(w, http.StatusOK, j.Buf)
}

// operation tells how a job stands: while it runs there is only its name.
func (s *server) operation(w http.ResponseWriter, r *http.Request) error {
	status, err := s.jobs.Poll(r.Context(), r.PathValue("operation"))
	if err != nil {
		return lost(err)
	}
	j := jsonw.Writer{}
	j.Object().Key("name").String("models/" + r.PathValue("model") + "/operations/" + status.ID)
	switch status.State {
	case video.Completed:
		veoResponse(&j).Key("generatedSamples").Array().Object().Key("video").Object().
			Key("uri").String("http://" + r.Host + "/v1beta/files/" + status.ID + download + "?alt=media").End().End().End().End().End()
	case video.Failed:
		veoFailure(&j, status.Error)
	}
	j.End()
	return send(w, http.StatusOK, j.Buf)
}

func veoResponse(w *jsonw.Writer) *jsonw.Writer {
	return w.Key("done").Bool(true).Key("response").Object().
		Key("@type").String("type.googleapis.com/google.ai.generativelanguage.v1beta.PredictLongRunningResponse").
		Key("generateVideoResponse").Object()
}

// veoFailure is an error, except of moderation: that filters the samples out of
// a reply that is otherwise good.
func veoFailure(w *jsonw.Writer, f *video.Fault) {
	if f.Code == "moderation_blocked" {
		veoResponse(w).Key("raiMediaFilteredCount").Int(1).Key("raiMediaFilteredReasons").Array().String(f.Message).End().End().End()
		return
	}
	const internal = 13 // google.rpc.Code
	w.Key("done").Bool(true).Key("error").Object().Key("code").Int(internal).Key("message").String(f.Message).End()
}

// download ends the address of a file's content.
const download = ":download"

func (s *server) file(w http.ResponseWriter, r *http.Request) error {
	id, ok := strings.CutSuffix(r.PathValue("file"), download)
	if !ok {
		return lost(video.ErrJobNotFound)
	}
	return s.content(w, r, id, video.Video)
}
