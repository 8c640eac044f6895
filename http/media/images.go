package media

import (
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	actors "stagedoor/actors/images"
	"stagedoor/http/attach"
	"stagedoor/http/sse"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/picture"
	"stagedoor/providers/shapes/images"
)

// These limits apply to bodies. A form may have sixteen pictures, few of
// which have the largest permitted size.
const (
	maxGeneration = 1 << 20
	maxEditJSON   = 64 << 20
	maxEditForm   = 256 << 20
)

// GenerateImages serves POST /v1/images/generations.
func (hs *Handlers) GenerateImages(w http.ResponseWriter, r *http.Request) {
	hs.images(w, r, func(rc *requestContext) (*picture.Request, error) {
		body, err := rc.readJSON(maxGeneration, images.MemberNames)
		if err != nil {
			return nil, err
		}
		return images.CheckGeneration(body, hs.resolve)
	})
}

// EditImages serves POST /v1/images/edits, as a form or as JSON.
func (hs *Handlers) EditImages(w http.ResponseWriter, r *http.Request) {
	hs.images(w, r, func(rc *requestContext) (*picture.Request, error) {
		form, err := isForm(w, r, maxEditForm)
		switch {
		case err != nil:
			return nil, err
		case form:
			return rc.editForm()
		}
		body, err := rc.readJSON(maxEditJSON, images.MemberNames)
		if err != nil {
			return nil, err
		}
		return images.CheckEdit(body, hs.resolve)
	})
}

// editForm reads an edit that was sent as a form. On success the request owns the files of the form, which
// rc.close removes.
func (rc *requestContext) editForm() (*picture.Request, error) {
	hs := rc.handlers
	form, err := ReadForm(rc.w, rc.r, FormLimits{
		Total: maxEditForm, File: images.FileLimit, Dir: hs.Scratch, Names: images.MemberNames, Sum: rc.sum,
	})
	if err != nil {
		return nil, err
	}
	texts := make([]images.Text, len(form.Fields))
	for i, f := range form.Fields {
		texts[i] = images.Text(f)
	}
	files := make([]images.File, len(form.Files))
	for i, f := range form.Files {
		files[i] = images.File(f)
	}
	request, err := images.CheckEditForm(texts, files, hs.resolve)
	if err != nil {
		_ = form.Close() // err is the first error
		return nil, err
	}
	return request, nil
}

// images checks and runs a request that read returns. The steps are the same for generations and edits, which
// differ in how a body is read. identify and enter come before that, so that a large upload without a key
// costs nothing.
func (hs *Handlers) images(w http.ResponseWriter, r *http.Request,
	read func(*requestContext) (*picture.Request, error)) {
	rc := hs.newRequestContext(w, r, images.Name)
	defer func() { rc.pass.Release(0) }() // has no effect after finish
	defer rc.endRecording()
	err := rc.identify(images.Descriptor.Scope)
	if err == nil {
		err = rc.enter()
	}
	if err == nil {
		rc.request, err = read(rc)
	}
	if err == nil {
		err = rc.admit()
	}
	if err != nil {
		rc.refuse(err)
		rc.close()
		return
	}
	if rc.serveDry() {
		return
	}
	emit := images.NewEmitter(rc.request, hs.resolve, hs.Env.Now)
	rc.attached(images.Descriptor.Scope, func(reply *actors.Reply) {
		if rc.request.Stream {
			rc.stream(reply, emit)
		} else {
			rc.whole(reply, emit)
		}
	})
}

// readJSON calls the function readJSON and adds the body to rc.sum.
func (rc *requestContext) readJSON(limit int64, names *fields.Names) ([]byte, error) {
	body, err := readJSON(rc.w, rc.r, limit, names)
	if rc.sum != nil {
		_, _ = rc.sum.Write(body)
	}
	return body, err
}

// whole writes a reply as one document. The pictures were kept and paid for before, so nothing can fail once
// the reply is written.
func (rc *requestContext) whole(reply *actors.Reply, emit *images.Emitter) {
	out := reply.Outcome()
	rc.headers(&out.Meta)
	if out.Err != nil {
		rc.answer(out.Err)
		return
	}
	_ = writeJSON(rc.w, emit.Reply(out.Reply)) // a client that has left is charged all the same
}

// stream writes a reply as events. A failure before the first event is sent as a status, unless the stream has begun
// with a heartbeat because the event is late (Options.Heartbeat).
func (rc *requestContext) stream(reply *actors.Reply, emit *images.Emitter) {
	s := &stream{requestContext: rc, emit: emit}
	var early <-chan time.Time
	if h := rc.handlers.Heartbeat; h > 0 {
		timer := time.NewTimer(h)
		defer timer.Stop()
		early = timer.C
	}
	beat := time.NewTicker(sse.LookEvery)
	defer beat.Stop()
	for {
		select {
		case p, more := <-reply.Partials():
			if !more {
				s.end(reply.Outcome())
				return
			}
			if s.send(p.Meta, emit.Partial(p.Image)) != nil {
				reply.Abandon()
				return
			}
		case <-early:
			if s.out == nil && s.send(&actors.Meta{}, images.Heartbeat) != nil {
				reply.Abandon()
				return
			}
		case <-beat.C:
			if s.out != nil && s.out.Quiet() && s.out.Send(images.Heartbeat) != nil {
				reply.Abandon()
				return
			}
		}
	}
}

// stream is a reply that is written event by event.
type stream struct {
	requestContext *requestContext
	emit           *images.Emitter
	out            *sse.Writer // nil before the first event
}

// send sends one event. The first one sends the headers, so that an earlier failure can still be an error with a
// status.
func (s *stream) send(m *actors.Meta, event []byte) error {
	if s.out == nil {
		s.requestContext.headers(m)
		s.requestContext.w.Header()[attach.SurvivesRestart] = attach.Survives(false)
		s.out = sse.NewWriter(s.requestContext.w, "text/event-stream", s.requestContext.handlers.Env.Now)
	}
	return s.out.Send(event)
}

// end writes the last event.
func (s *stream) end(out *actors.Outcome) {
	switch {
	case out.Err == nil:
		_ = s.send(&out.Meta, s.emit.Completed(out.Reply)) // a client that has left is charged all the same
	case s.out == nil:
		s.requestContext.headers(&out.Meta)
		s.requestContext.answer(out.Err)
	default:
		_ = s.out.Send(s.emit.Failure(out.Err)) // the stream is over either way
	}
}

// readJSON returns a body that is one JSON object by the rules of fields.CheckBody.
func readJSON(w http.ResponseWriter, r *http.Request, limit int64, names *fields.Names) ([]byte, error) {
	u, err := newUpload(w, r, limit)
	if err != nil {
		return nil, err
	}
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := params["charset"]
	switch {
	case r.Header.Get("Content-Type") == "":
	case err != nil || !isJSON(media):
		return nil, dialogue.UnsupportedMedia("Content-Type must be application/json")
	case charset != "" && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "us-ascii"):
		return nil, dialogue.UnsupportedMedia("Content-Type charset must be utf-8")
	}
	if err := checkEncoding(r.Header); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(u)
	if err != nil {
		return nil, err
	}
	return body, fields.CheckBody(body, names)
}

// checkEncoding refuses compressed bodies, because their size is known only after they were unpacked.
func checkEncoding(h http.Header) error {
	if encoding := h.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return dialogue.UnsupportedMedia("Content-Encoding must be identity: send the body uncompressed")
	}
	return nil
}
