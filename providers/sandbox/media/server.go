// Package media serves the simulator's pictures and videos over HTTP in the protocols of the images routes, the image
// vendor, the videos routes and Veo. Pictures are read and written with the codecs of the shapes, so a request that
// breaks a rule of the documents is refused. The routes for videos are written from the vendors' descriptions.
//
// It accepts any key. Two routes are its own:
//
//	GET /sandbox/jobs             submissions, polls and downloads of every job
//	GET /sandbox/pictures/{name}  the pictures whose addresses replies contain
//
// # Usage
//
// Handler wraps the handler of the sandbox's text routes. Faults are requested in the prompt, as
// for text. Tests look at /sandbox/jobs to see that a job was not submitted twice.
//
// # Concurrency
//
// The handler is safe for concurrent use. It keeps the pictures whose addresses it gave out in a
// bounded store and forgets the oldest.
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

	"stagedoor/providers/byterange"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/sandbox/job"
	"stagedoor/providers/shapes/gemini"
	"stagedoor/providers/shapes/imagegen"
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
	for _, route := range imagegen.Routes {
		mux.HandleFunc("POST "+route.UpstreamPath(), s.answer(vendorError, s.makeVendorImages(route)))
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

// answer reads the body, calls h and turns an error into the protocol's envelope or into the fault that was requested.
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
			// The connection was cut as requested, or the client has left. The reply must not look complete.
			panic(http.ErrAbortHandler)
		}
	}
}

// clientError returns the error that a client gets in an envelope, or nil.
func clientError(err error) *dialogue.Error {
	failure := new(dialogue.Error)
	switch {
	case errors.As(err, &failure):
		return failure
	case errors.Is(err, video.ErrJobNotFound):
		return dialogue.Refusal(404, "video_not_found", err.Error())
	case errors.Is(err, video.ErrNoVariant):
		return dialogue.Invalid("variant", err.Error())
	}
	return nil
}

// send writes v as JSON.
func send(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return sendJSON(w, status, body)
}

// sendJSON writes a JSON body.
func sendJSON(w http.ResponseWriter, status int, body []byte) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, err := w.Write(body)
	return err
}

// imagesError is the envelope of the images and videos routes.
func imagesError(e *dialogue.Error) any { return object{"error": json.RawMessage(e.AppendJSON(nil))} }

// vendorError returns the body of an error as the image vendor sends it.
func vendorError(e *dialogue.Error) any { return object{"error": e.Message} }

// googleError returns the body of an error as Veo sends it.
func googleError(e *dialogue.Error) any { return json.RawMessage(gemini.Shape.Envelope(e)) }

const (
	cacheBytes    = 128 << 20
	cachePictures = 1000
)

// pictureCache keeps the newest pictures under their addresses. The zero value is empty.
type pictureCache struct {
	mu    sync.Mutex
	kept  map[string]*picture.Image
	names []string // oldest first
	bytes int
}

// putAll keeps the pictures of a reply and gives them addresses on the host that r was sent to. A withheld picture gets
// none.
func (c *pictureCache) putAll(r *http.Request, reply *picture.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range reply.Images {
		img := &reply.Images[i]
		if len(img.Data) == 0 {
			continue
		}
		for len(c.names) > 0 && (len(c.names) >= cachePictures || c.bytes+len(img.Data) > cacheBytes) {
			c.bytes -= len(c.kept[c.names[0]].Data)
			delete(c.kept, c.names[0])
			c.names = c.names[1:]
		}
		if c.kept == nil {
			c.kept = map[string]*picture.Image{}
		}
		name := rand.Text() + "." + strings.TrimPrefix(img.MediaType, "image/")
		c.kept[name], c.names, c.bytes = img, append(c.names, name), c.bytes+len(img.Data)
		img.URL = "http://" + r.Host + "/sandbox/pictures/" + name
	}
}

// sendPicture serves a picture that an earlier reply has named.
func (s *server) sendPicture(w http.ResponseWriter, r *http.Request, _ *input) error {
	s.pictures.mu.Lock()
	img := s.pictures.kept[r.PathValue("name")]
	s.pictures.mu.Unlock()
	if img == nil {
		return dialogue.Refusal(404, "", "unknown or expired picture")
	}
	w.Header().Set("Content-Type", img.MediaType)
	byterange.Correct(r.Header)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(img.Data))
	return nil
}
