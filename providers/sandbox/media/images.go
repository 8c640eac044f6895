package media

import (
	"errors"
	"net/http"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/shapes/imagegen"
	"stagedoor/providers/shapes/images"
)

// makeImages answers the images routes, whole or as events. A request that names no model is not checked against the
// rules of any family of models.
func (s *server) makeImages(op picture.Operation) handler {
	return func(w http.ResponseWriter, r *http.Request, in *input) (err error) {
		resolve := func(string) string { return in.values["model"] }
		var req *picture.Request
		switch {
		case op == picture.Generate:
			req, err = images.CheckGeneration(in.raw, resolve)
		case in.raw != nil:
			req, err = images.CheckEdit(in.raw, resolve)
		default:
			var texts []images.Text
			var files []images.File
			for _, t := range in.texts {
				texts = append(texts, images.Text(t))
			}
			for _, f := range in.files {
				files = append(files, images.File{Field: f.Name, File: f.File})
			}
			req, err = images.CheckEditForm(texts, files, resolve)
		}
		if err != nil {
			return err
		}
		defer req.Close() // only a temporary file could be left behind
		req.Model = in.values["model"]
		emitter := images.NewEmitter(req, resolve, s.model.Env.Now)
		began := false
		sendEvent := func(event []byte) error {
			began = true
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Cache-Control", "no-cache")
			if _, err := w.Write(event); err != nil {
				return err
			}
			return http.NewResponseController(w).Flush()
		}
		err = s.model.Picture(r.Context(), req, r.Header, func(ev *picture.Event) error {
			switch {
			case ev.Partial != nil:
				return sendEvent(emitter.Partial(ev.Partial))
			case req.Stream:
				return sendEvent(emitter.Completed(ev.Done))
			case !req.Inline:
				s.pictures.putAll(r, ev.Done)
			}
			return sendJSON(w, http.StatusOK, emitter.Reply(ev.Done))
		})
		// The status of a stream that has begun is fixed, so its failure is an event.
		if failure := new(dialogue.Error); began && errors.As(err, &failure) {
			return sendEvent(emitter.Failure(failure))
		}
		return err
	}
}

// makeVendorImages answers one of the image vendor's routes.
func (s *server) makeVendorImages(route *imagegen.Route) handler {
	return func(w http.ResponseWriter, r *http.Request, in *input) (err error) {
		var fields *imagegen.Input
		if in.raw != nil {
			fields, err = route.FromJSON(in.raw)
		} else {
			var texts []imagegen.Text
			for _, t := range in.texts {
				texts = append(texts, imagegen.Text(t))
			}
			fields, err = route.FromForm(texts, in.files)
		}
		if err == nil {
			err = route.Check(fields)
		}
		if err != nil {
			return err
		}
		req := route.Decode(fields)
		return s.model.Picture(r.Context(), req, r.Header, func(ev *picture.Event) error {
			s.pictures.putAll(r, ev.Done)
			return sendJSON(w, http.StatusOK, imagegen.AppendReply(nil, req, ev.Done))
		})
	}
}
