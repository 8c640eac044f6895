package media

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/sandbox/job"
	"stagedoor/providers/video"
)

// server is safe for concurrent use.
type server struct {
	model    *sandbox.Model
	jobs     *job.Engine
	pictures pictureCache
}

// handler answers a request whose body has been read. It returns an error before it has written anything, except for
// errors that break the connection.
type handler func(w http.ResponseWriter, r *http.Request, in *input) error

// object is a JSON object.
type object = map[string]any

// Handler serves the media protocols and passes every other request to next.
func Handler(model *sandbox.Model, jobs *job.Engine, next http.Handler) http.Handler {
	s := &server{model: model, jobs: jobs}
	mux := http.NewServeMux()
	mux.Handle("/", next)
	for pattern, h := range map[string]handler{
		"POST /v1/images/generations":  s.makeImages(picture.Generate),
		"POST /v1/images/edits":        s.makeImages(picture.Edit),
		"POST /v1/videos":              s.createVideo,
		"GET /v1/videos":               s.listVideos,
		"GET /v1/videos/{id}":          s.retrieveVideo,
		"DELETE /v1/videos/{id}":       s.deleteVideo,
		"GET /v1/videos/{id}/content":  s.sendVideoContent,
		"POST /v1/videos/{id}/remix":   s.deriveVideo(false),
		"POST /v1/videos/edits":        s.deriveVideo(false),
		"POST /v1/videos/extensions":   s.deriveVideo(true),
		"GET /sandbox/jobs":            s.countJobs,
		"GET /sandbox/pictures/{name}": s.sendPicture,
	} {
		mux.HandleFunc(pattern, s.answer(imagesError, h))
	}
	for name, op := range vendorOperations {
		mux.HandleFunc("POST /"+name, s.answer(vendorError, s.makeVendorImages(op, "V2")))
		mux.HandleFunc("POST /v1/ideogram-v3/"+name, s.answer(vendorError, s.makeVendorImages(op, "V3")))
	}
	predict := s.answer(googleError, s.predictLongRunning)
	mux.HandleFunc("POST /v1beta/models/{call}", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, predictMethod) {
			predict(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /v1beta/models/{model}/operations/{id}", s.answer(googleError, s.retrieveOperation))
	mux.HandleFunc("GET /v1beta/files/{file}", s.answer(googleError, s.sendFile))
	return mux
}

// answer reads the body, calls h and turns an error into the protocol's envelope or into the fault that was ordered.
func (s *server) answer(envelope func(*dialogue.Error) any, h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in, err := readInput(w, r)
		defer in.close()
		if err == nil {
			err = h(w, r, in)
		}
		failure := clientError(err)
		switch {
		case err == nil:
		case failure != nil:
			if failure.RetryAfter > 0 {
				w.Header().Set("Retry-After", strconv.Itoa(int(failure.RetryAfter.Seconds())))
			}
			send(w, failure.Status, envelope(failure))
		case errors.Is(err, sandbox.ErrGarbage):
			w.Write([]byte(sandbox.GarbageBytes))
		default:
			// The connection was cut as ordered, or the client has left. The reply must not look complete.
			panic(http.ErrAbortHandler)
		}
	}
}

// clientError returns the error that a client gets in an envelope, or nil.
func clientError(err error) *dialogue.Error {
	failure := new(dialogue.Error)
	if errors.As(err, &failure) {
		return failure
	}
	for _, row := range []struct {
		err               error
		status            int
		kind, code, param string
	}{
		{video.ErrJobNotFound, 404, dialogue.TypeNotFound, "video_not_found", ""},
		{job.ErrExpired, 404, dialogue.TypeNotFound, "video_expired", ""},
		{job.ErrNotReady, 400, dialogue.TypeInvalidRequest, "video_not_ready", ""},
		{job.ErrFailed, 400, dialogue.TypeInvalidRequest, "video_failed", ""},
		{video.ErrNoVariant, 400, dialogue.TypeInvalidRequest, "invalid_value", "variant"},
		{job.ErrBusy, 503, dialogue.TypeOverloaded, "sandbox_busy", ""},
	} {
		if errors.Is(err, row.err) {
			return &dialogue.Error{
				Status:  row.status,
				Type:    row.kind,
				Param:   row.param,
				Code:    row.code,
				Message: err.Error(),
			}
		}
	}
	return nil
}

func send(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, err = w.Write(body)
	return err
}

// imagesError is the envelope of the images and videos routes.
func imagesError(e *dialogue.Error) any { return object{"error": json.RawMessage(e.AppendJSON(nil))} }

// vendorError is the envelope of the image vendor (wire/imagegen.md 7).
func vendorError(e *dialogue.Error) any { return object{"error": e.Message} }

// googleError is Veo's envelope (wire/gemini.md 6).
func googleError(e *dialogue.Error) any {
	word := map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
		429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}[e.Status]
	if word == "" && e.Status < 500 {
		word = "FAILED_PRECONDITION"
	} else if word == "" {
		word = "INTERNAL"
	}
	return object{"error": object{"code": e.Status, "message": e.Message, "status": word}}
}

const (
	cacheBytes    = 128 << 20
	cachePictures = 1000
)

// pictureCache keeps the newest pictures under their addresses. The zero value is empty.
type pictureCache struct {
	mu    sync.Mutex
	kept  map[string]*picture.Image
	order []string // names, oldest first
	bytes int
}

// put keeps a picture and returns its address on the host that r was sent to, or nil if the picture was withheld.
func (c *pictureCache) put(r *http.Request, img *picture.Image) any {
	if len(img.Data) == 0 {
		return nil
	}
	name := rand.Text() + "." + strings.TrimPrefix(img.MediaType, "image/")
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = map[string]*picture.Image{}
	}
	for len(c.order) > 0 && (len(c.order) >= cachePictures || c.bytes+len(img.Data) > cacheBytes) {
		c.bytes -= len(c.kept[c.order[0]].Data)
		delete(c.kept, c.order[0])
		c.order = c.order[1:]
	}
	c.kept[name], c.order, c.bytes = img, append(c.order, name), c.bytes+len(img.Data)
	return "http://" + r.Host + "/sandbox/pictures/" + name
}

func (s *server) sendPicture(w http.ResponseWriter, r *http.Request, _ *input) error {
	s.pictures.mu.Lock()
	img := s.pictures.kept[r.PathValue("name")]
	s.pictures.mu.Unlock()
	if img == nil {
		return &dialogue.Error{Status: 404, Type: dialogue.TypeNotFound, Message: "unknown or expired picture"}
	}
	w.Header().Set("Content-Type", img.MediaType)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(img.Data))
	return nil
}
