package media

import (
	"context"
	"errors"
	"math/rand/v2"
	"mime"
	"net/http"
	"slices"

	"stagedoor/actors/ledger"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/mask"
	"stagedoor/providers/picture"
	"stagedoor/providers/shapes/imagegen"
	"stagedoor/providers/shapes/registry"
	"stagedoor/providers/upstream"
)

// Limits of the image vendor's bodies (wire/imagegen.md 5): a picture, a mask and
// two sets of references, each of which is no larger than one file may be.
const (
	maxImagegenForm = 4*imagegen.MaxFile + maxTexts
	maxImagegenJSON = 1 << 20
)

// ImagegenRoutes serves all of the image vendor's routes.
func (d *Doors) ImagegenRoutes(handle func(pattern string, h http.HandlerFunc)) {
	for _, route := range imagegen.Routes {
		handle("POST "+imagegen.Prefix+route.Path, d.Imagegen(route))
	}
}

// Imagegen is the door of one of the image vendor's routes
// (imagegen-and-oauth.md 4.1, 4.2).
func (d *Doors) Imagegen(route *imagegen.Route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := &visit{doors: d, w: w, r: r}
		defer func() { v.pass.Release(0) }() // unless it was released by what was used
		if err := v.imagegen(route); err != nil {
			v.refuse(err)
			v.close()
			return
		}
		reply := v.begin()
		out := reply.Outcome()
		v.headers(&out.Meta)
		if out.Err != nil {
			v.answer(out.Err)
		} else {
			if out.Reply.Created.IsZero() {
				out.Reply.Created = d.Env.Now()
			}
			_ = writeJSON(w, imagegen.AppendReply(nil, v.request, out.Reply)) // whoever has left has paid
		}
		v.finish(reply)
	}
}

// imagegen checks a request. The pixels of a mask are looked at last, although
// they are a matter of the request's own rules: that takes time, which the key's
// limits bound.
func (v *visit) imagegen(route *imagegen.Route) error {
	if err := v.identify(imagegen.Descriptor.Scope); err != nil {
		return err
	}
	if err := v.enter(); err != nil {
		return err
	}
	in, files, err := v.doors.readImagegen(v.w, v.r, route)
	if err == nil {
		err = route.Check(in)
	}
	if err != nil {
		_ = files.Close() // err says more
		return err
	}
	v.request = route.Decode(in)
	v.plan = v.doors.imagegenPlan(v.request.Model)
	if route.V3 {
		v.price = bySpeed(v.request.RenderingSpeed)
	}
	if err := v.admit(); err != nil {
		return err
	}
	return v.judge()
}

// readImagegen reads a body in one of the route's encodings. files are the
// caller's to close, whatever else happens, until the input is decoded.
func (d *Doors) readImagegen(w http.ResponseWriter, r *http.Request, route *imagegen.Route) (in *imagegen.Input, files *Form, err error) {
	files = new(Form)
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if route.Encoding&imagegen.Form == 0 || route.Encoding&imagegen.JSON != 0 && media == "application/json" {
		body, err := readJSON(w, r, maxImagegenJSON, imagegen.MemberNames)
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
	form, err := ReadForm(w, r, FormLimits{
		Total: maxImagegenForm, File: limit, Dir: d.Scratch, Names: imagegen.MemberNames,
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

// imagegenPlan is what the catalogue says of a model, as far as it makes
// pictures: a pattern for all names is often meant for text. Where nothing is
// left, the first provider of the vendor's own kind serves the model; nil: nobody
// does.
func (d *Doors) imagegenPlan(model string) []catalog.Candidate {
	c := d.Catalog()
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

// bySpeed charges the third generation by its rendering speed, whoever serves it
// (imagegen-and-oauth.md 8). The others cost what the catalogue says.
func bySpeed(speed string) func(*catalog.Candidate) *catalog.Price {
	price, _ := ledger.Speed(speed) // the rules know the same words
	return func(*catalog.Candidate) *catalog.Price { return price }
}

// judge looks at the pixels of a mask, if there is one.
func (v *visit) judge() error {
	if v.request.Mask == nil {
		return nil
	}
	err := mask.Check(v.r.Context(), v.request.Sources[0], v.request.Mask)
	var flaw mask.Flaw
	switch {
	case errors.As(err, &flaw):
		return dialogue.Invalid("mask", flaw.Error())
	case errors.Is(err, context.Canceled):
		return upstream.CancelledBy(upstream.ErrClient).Err
	}
	return err
}
