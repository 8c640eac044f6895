package media

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/sandbox/job"
)

// server serves the media protocols. It is safe for concurrent use.
type server struct {
	model *sandbox.Model
	jobs  *job.Engine
	next  http.Handler
	shelf shelf
}

// Handler serves the media protocols, and hands everything else to next.
func Handler(model *sandbox.Model, jobs *job.Engine, next http.Handler) http.Handler {
	s := &server{model: model, jobs: jobs, next: next}
	mux := http.NewServeMux()
	mux.Handle("/", next)

	mux.HandleFunc("POST /v1/images/generations", s.answer(plain, s.generateImages))
	mux.HandleFunc("POST /v1/images/edits", s.answer(plain, s.editImages))

	for name := range vendorOperations {
		mux.HandleFunc("POST /"+name, s.answer(vendor, s.vendorPictures(name, false)))
		mux.HandleFunc("POST /v1/ideogram-v3/"+name, s.answer(vendor, s.vendorPictures(name, true)))
	}

	mux.HandleFunc("POST /v1/videos", s.answer(plain, s.createVideo))
	mux.HandleFunc("GET /v1/videos", s.answer(plain, s.listVideos))
	mux.HandleFunc("GET /v1/videos/{id}", s.answer(plain, s.retrieveVideo))
	mux.HandleFunc("DELETE /v1/videos/{id}", s.answer(plain, s.deleteVideo))
	mux.HandleFunc("GET /v1/videos/{id}/content", s.answer(plain, s.videoContent))
	mux.HandleFunc("POST /v1/videos/{id}/remix", s.answer(plain, s.remixVideo))
	mux.HandleFunc("POST /v1/videos/edits", s.answer(plain, s.editVideo))
	mux.HandleFunc("POST /v1/videos/extensions", s.answer(plain, s.extendVideo))

	mux.HandleFunc("POST /v1beta/models/{call}", s.answer(google, s.callModel))
	mux.HandleFunc("GET /v1beta/models/{model}/operations/{operation}", s.answer(google, s.operation))
	mux.HandleFunc("GET /v1beta/files/{file}", s.answer(google, s.file))

	mux.HandleFunc("GET /sandbox/jobs", s.answer(plain, s.countJobs))
	mux.HandleFunc("GET /sandbox/pictures/{name}", s.answer(plain, s.keptPicture))
	return mux
}

// handle answers a request or fails before it has written anything, except with
// an error that is none of dialogue's.
type handle func(w http.ResponseWriter, r *http.Request) error

// answer runs a handle. What it returns becomes an error of the protocol or the
// fault that was ordered.
func (s *server) answer(envelope func(*dialogue.Error) []byte, h handle) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		failure := new(dialogue.Error)
		switch {
		case err == nil:
		case errors.As(err, &failure):
			refuse(w, failure, envelope(failure))
		case errors.Is(err, job.ErrBusy):
			refuse(w, busy, envelope(busy))
		case errors.Is(err, sandbox.ErrGarbage):
			w.Write([]byte("<html><body>502 Bad Gateway</body></html>\n\ndata: {\"broken\":\n\n\x00\xff\n"))
		default:
			// Cut as ordered, or the client is gone: the connection must not look as
			// if the reply had ended.
			panic(http.ErrAbortHandler)
		}
	}
}

var busy = &dialogue.Error{Status: 503, Type: dialogue.TypeOverloaded, Code: "sandbox_busy", Message: "the sandbox is too busy to answer as it was told to"}

func refuse(w http.ResponseWriter, e *dialogue.Error, body []byte) {
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds())))
	}
	send(w, e.Status, body)
}

func send(w http.ResponseWriter, status int, body []byte) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, err := w.Write(body)
	return gone(err)
}

// gone is a client that left while it was written to.
func gone(err error) error {
	if err != nil {
		return context.Canceled
	}
	return nil
}

// plain is the envelope of the images and videos routes.
func plain(e *dialogue.Error) []byte { return append(e.AppendJSON([]byte(`{"error":`)), '}') }

// vendor is what the image vendor's refusals look like (wire/imagegen.md 7).
func vendor(e *dialogue.Error) []byte {
	w := jsonw.Writer{}
	w.Object().Key("error").String(e.Message).End()
	return w.Buf
}

// google is the third shape's (wire/gemini.md 6).
func google(e *dialogue.Error) []byte {
	w := jsonw.Writer{}
	w.Object().Key("error").Object().Key("code").Int(int64(e.Status)).Key("message").String(e.Message).
		Key("status").String(statusWord(e.Status)).End().End()
	return w.Buf
}

func statusWord(status int) string {
	words := map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
		429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}
	if word := words[status]; word != "" {
		return word
	}
	if status < 500 {
		return "FAILED_PRECONDITION"
	}
	return "INTERNAL"
}
