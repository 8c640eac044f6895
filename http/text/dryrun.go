package text

import (
	"log/slog"
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"

	"stagedoor/actors/text"
	"stagedoor/http/accesslog"
	"stagedoor/http/dryrun"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
)

// translation has the shapes that the query of a request to /v1/translate names. They are nil if it names none.
type translation struct{ from, to *shapes.Shape }

// Translate serves POST /v1/translate. The body is a request in any text shape, and the reply is the request that its
// model's provider would receive, in the provider's own shape or in that of ?to=. Nothing is sent. The checks are those
// of the real request; the key needs the scope of the body's shape.
func (hs *Handlers) Translate(w http.ResponseWriter, r *http.Request) {
	// Errors have the form of the first shape until the body's is known.
	rc := hs.newRequestContext(hs.Shapes[0], w, r, shapes.Params{Path: r.URL.Path, Header: r.Header})
	rc.translate = &translation{}
	q := r.URL.Query()
	for name, to := range map[string]**shapes.Shape{"from": &rc.translate.from, "to": &rc.translate.to} {
		if v := q.Get(name); v != "" {
			if *to = hs.shapeNamed(v); *to == nil {
				rc.refuse(dialogue.Invalid(name, "must be the name of a text shape"))
				return
			}
		}
	}
	if rc.translate.from != nil {
		rc.shape = rc.translate.from
	}
	rc.serve()
}

// shapeNamed returns the shape of a name, or nil.
func (hs *Handlers) shapeNamed(name string) *shapes.Shape {
	for _, s := range hs.Shapes {
		if string(s.Name) == name {
			return s
		}
	}
	return nil
}

// findShape sets the shape of a body that was sent to /v1/translate, and checks that the key has its scope. Shapes that
// have the model in their path take it from the query.
func (rc *requestContext) findShape() error {
	rc.shape = rc.translate.from
	if rc.shape == nil {
		rc.shape = rc.detectShape()
	}
	if rc.shape == nil {
		rc.shape = rc.handlers.Shapes[0]
		if err := fields.CheckBody(rc.payload, nil); err != nil {
			return err
		}
		return dialogue.Invalid("from", "is needed: the body has no member that shows its shape")
	}
	if err := rc.handlers.Auth.Permit(&rc.key, rc.r, rc.shape.Scope, ""); err != nil {
		return err
	}
	if rc.shape.Read == nil {
		return nil
	}
	q := rc.r.URL.Query()
	if rc.in.Model = q.Get("model"); rc.in.Model == "" {
		return dialogue.Invalid("model", "is needed in the query, because requests of this shape have it in their path")
	}
	rc.in.Stream, _ = strconv.ParseBool(q.Get("stream"))
	return nil
}

// detectShape returns the shape that the headers or the body show, or nil. A header with which only one shape's clients
// ask for models decides. Otherwise it is the shape of which the body has the most signs (Descriptor.Signs), or the
// first of those that have as many.
func (rc *requestContext) detectShape() (found *shapes.Shape) {
	most := 0
	for _, s := range rc.handlers.Shapes {
		if s.Models != nil && s.Models.Header != "" && rc.r.Header.Get(s.Models.Header) != "" {
			return s
		}
		n := 0
		for _, sign := range s.Signs {
			if gjson.GetBytes(rc.payload, sign).Exists() {
				n++
			}
		}
		if n > most {
			found, most = s, n
		}
	}
	return found
}

// beginDry prepares the dry run of a request that asks for one.
func (rc *requestContext) beginDry() (err error) {
	owner := string(rc.owner())
	if rc.translate == nil {
		rc.dry, err = dryrun.Begin(rc.r, rc.handlers.Env.Memory, owner)
		return err
	}
	rc.dry = dryrun.New(rc.handlers.Env.Memory, owner)
	if to := rc.translate.to; to != nil {
		rc.dry.Shape = to.Name
	}
	return nil
}

// writeDry waits for the end of a dry run and writes its result.
func (rc *requestContext) writeDry(reply *text.Reply) {
	for range reply.Chunks() { // which is an error at most, because nothing answers
	}
	rc.note(nil)
	rc.trace(nil)
	accesslog.Note(rc.w, slog.Bool("dry_run", true))
	if err := rc.dry.Err; err != nil {
		rc.answer(err)
	} else {
		dryrun.Write(rc.w, rc.head.Model, rc.dry)
	}
	rc.body.free()
}
