package media

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"

	"stagedoor/actors/images"
	"stagedoor/actors/ledger"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/mask"
	"stagedoor/providers/picture"
	"stagedoor/providers/shapes/imagegen"
	"stagedoor/providers/shapes/registry"
	"stagedoor/providers/upstream"
)

// Limits of the image vendor's bodies: a picture, a mask and
// two sets of references, each of which is no larger than one file may be.
const (
	maxImagegenForm = 4*imagegen.MaxFile + maxTexts
	maxImagegenJSON = 1 << 20
)

// ImagegenRoutes serves all of the image vendor's routes.
func (hs *Handlers) ImagegenRoutes(handle func(pattern string, h http.HandlerFunc)) {
	for _, route := range imagegen.Routes {
		handle("POST "+imagegen.Prefix+route.Path, hs.Imagegen(route))
	}
}

// Imagegen returns the handler of one of the image vendor's routes.
func (hs *Handlers) Imagegen(route *imagegen.Route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rc := hs.newRequestContext(w, r, imagegen.Name)
		defer func() { rc.pass.Release(0) }() // has no effect after finish
		defer rc.endRecording()
		if err := rc.imagegen(route); err != nil {
			rc.refuse(err)
			rc.close()
			return
		}
		if rc.serveDry() {
			return
		}
		rc.attached(imagegen.Descriptor.Scope, func(reply *images.Reply) {
			out := reply.Outcome()
			rc.headers(&out.Meta)
			if out.Err != nil {
				rc.answer(out.Err)
				return
			}
			if out.Reply.Created.IsZero() {
				out.Reply.Created = hs.Env.Now()
			}
			// A client that has left is charged all the same.
			_ = writeJSON(rc.w, imagegen.AppendReply(nil, rc.request, out.Reply))
		})
	}
}

// imagegen checks a request. It checks the pixels of a mask last, because that takes time, and the
// limits of the key have to bound it.
func (rc *requestContext) imagegen(route *imagegen.Route) error {
	if err := rc.identify(imagegen.Descriptor.Scope); err != nil {
		return err
	}
	if err := rc.enter(); err != nil {
		return err
	}
	in, files, err := rc.readImagegen(route)
	if err == nil {
		err = route.Check(in)
	}
	if err != nil {
		_ = files.Close() // err is the first error
		return err
	}
	rc.request = route.Decode(in)
	rc.plan = rc.handlers.imagegenPlan(rc.request.Model)
	if route.V3 {
		rc.price = bySpeed(rc.request.RenderingSpeed)
	}
	if err := rc.admit(); err != nil {
		return err
	}
	return rc.checkMask()
}

// readImagegen reads a body in one of the route's encodings. The caller closes files, also after an
// error, unless the input was decoded.
func (rc *requestContext) readImagegen(route *imagegen.Route) (in *imagegen.Input, files *Form, err error) {
	files = new(Form)
	isJSON := route.Encoding&imagegen.Form == 0
	if route.Encoding == imagegen.Form|imagegen.JSON {
		sent, err := isForm(rc.w, rc.r, maxImagegenForm)
		if err != nil {
			return nil, files, err
		}
		isJSON = !sent
	}
	if isJSON {
		body, err := rc.readJSON(maxImagegenJSON, imagegen.MemberNames)
		if err != nil {
			return nil, files, err
		}
		in, err = route.FromJSON(body)
		return in, files, err
	}
	limit := func(field string) int64 {
		if route.TakesFile(field) {
			return imagegen.MaxFile
		}
		return 0
	}
	form, err := ReadForm(rc.w, rc.r, FormLimits{
		Total: maxImagegenForm, File: limit, Dir: rc.handlers.Scratch, Names: imagegen.MemberNames, Sum: rc.sum,
	})
	if err != nil {
		return nil, files, err
	}
	texts := make([]imagegen.Text, len(form.Fields))
	for i, f := range form.Fields {
		texts[i] = imagegen.Text(f)
	}
	attached := make([]picture.Attachment, len(form.Files))
	for i, f := range form.Files {
		attached[i] = picture.Attachment{Name: f.Field, File: f.File}
	}
	in, err = route.FromForm(texts, attached)
	return in, form, err
}

// makesPictures reports whether a provider makes pictures whichever model it is asked for. Not
// every provider of the chat shape does, although some of its models can.
func makesPictures(p *catalog.Provider) bool {
	return p.Serves(catalog.Sandbox) || slices.ContainsFunc(registry.Pictures, func(s *picture.Shape) bool {
		return s.MakesPictures && p.Serves(s.Name)
	})
}

// imagegenPlan returns the candidates for a model that make pictures. It leaves out others, because a
// pattern for all names is often meant for text. If none is left, the first provider of the image
// vendor's shape is the candidate. imagegenPlan returns nil without one.
func (hs *Handlers) imagegenPlan(model string) []catalog.Candidate {
	c := hs.Catalog()
	if entry, ok := c.Resolve(model); ok {
		plan := slices.Clone(entry.Plan(rand.IntN))
		plan = slices.DeleteFunc(plan, func(c catalog.Candidate) bool {
			return !makesPictures(c.Provider)
		})
		if len(plan) > 0 {
			return plan
		}
	}
	if p := c.FirstServing(imagegen.Name); p != nil {
		return []catalog.Candidate{{Provider: p, Model: model}}
	}
	return nil
}

// bySpeed returns the price of the third generation by its rendering speed, which does not depend on
// the provider. Other generations have the price in the catalogue.
func bySpeed(speed string) func(*catalog.Candidate) *catalog.Price {
	price, _ := ledger.Speed(speed) // route.Check accepts the same values
	return func(*catalog.Candidate) *catalog.Price { return price }
}

// checkMask checks the pixels of a mask, if the request has one.
func (rc *requestContext) checkMask() error {
	if rc.request.Mask == nil {
		return nil
	}
	err := mask.Check(rc.r.Context(), string(rc.owner()), rc.request.Sources[0], rc.request.Mask)
	var flaw mask.Flaw
	switch {
	case errors.As(err, &flaw):
		return dialogue.Invalid("mask", flaw.Error())
	case errors.Is(err, context.Canceled):
		return upstream.CancelledBy(upstream.ErrClient).Err
	}
	return err
}
