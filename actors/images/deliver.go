package images

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"stagedoor/actors/engine"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/upstream"
)

// maxPicture bounds one picture that is fetched or kept.
const maxPicture = 64 << 20

// prepare turns what an upstream made into what the client gets: the picture itself, or an address of the
// gateway's own. An upstream's address never reaches a client. Images that moderation has withheld have no
// content. They stay in the reply, at their places, if the client's shape can show them, and are left out otherwise.
func (a *attempt) prepare(ctx context.Context, made *picture.Reply) *upstream.Failure {
	if a.request.Picture.Operation == picture.Describe {
		if len(made.Descriptions) == 0 {
			return unusable("a reply without a description")
		}
		return nil
	}
	if len(made.Images) == 0 {
		return unusable("a reply without a picture")
	}
	if f := a.leaveOutWithheld(made); f != nil {
		return f
	}
	for i := range made.Images {
		img := &made.Images[i]
		if !img.HasContent() {
			if img.Unsafe {
				continue
			}
			return unusable("an image without content")
		}
		changed, f := a.deliverable(ctx, img)
		if f != nil {
			return f
		}
		if changed {
			made.Raw = nil
		}
	}
	a.describe(made)
	return nil
}

// leaveOutWithheld removes the withheld images from the reply to a client whose shape has no word for them. If that
// leaves none, the request is refused, as it is where the vendor of that shape finds its image unsafe.
func (a *attempt) leaveOutWithheld(made *picture.Reply) *upstream.Failure {
	if a.request.Picture.ShowsWithheld {
		return nil
	}
	before := len(made.Images)
	made.Images = slices.DeleteFunc(made.Images, func(i picture.Image) bool { return i.Unsafe && !i.HasContent() })
	if len(made.Images) == 0 {
		return a.refusedInBody(dialogue.ImageWithheld())
	}
	if len(made.Images) < before {
		made.Raw = nil
	}
	return nil
}

// describe sets the output format and the size of a reply from its first image, if the upstream did not report them.
func (a *attempt) describe(made *picture.Reply) {
	first := &made.Images[0]
	if made.OutputFormat == "" {
		_, made.OutputFormat, _ = strings.Cut(first.MediaType, "/")
	}
	if made.Size == "" && first.Width > 0 {
		made.Size = picture.Size{Width: first.Width, Height: first.Height}.String()
	}
}

// deliverable brings one image into the form that the client asked for. By value the upstream's own bytes are
// passed on. By address they are kept by the gateway, and Keep returns the address. changed says that the
// upstream's reply can no longer be sent as it is.
func (a *attempt) deliverable(ctx context.Context, img *picture.Image) (changed bool, f *upstream.Failure) {
	fetched := img.URL != ""
	if fetched {
		if f := a.fetch(ctx, img); f != nil {
			return false, f
		}
	}
	if f := usable(img); f != nil {
		return false, f
	}
	if a.request.Picture.Inline {
		return fetched, nil
	}
	if img.MediaType == "" {
		return false, unusable("a picture of an unknown kind")
	}
	content, err := img.Reader()
	if err != nil {
		return false, engine.CallerFault(err)
	}
	address, err := a.request.Keep(ctx, img.MediaType, content)
	if err != nil {
		return false, notKept(ctx, err)
	}
	img.Data, img.Base64, img.URL = nil, nil, address
	return true, nil
}

// notKept returns the failure of a picture that could not be stored. The request is not sent again, because another
// provider could not help.
func notKept(ctx context.Context, err error) *upstream.Failure {
	if ctx.Err() != nil {
		return engine.Cancelled(ctx)
	}
	return engine.CallerFault(err)
}

// usable sets the media type and the size of a picture from its header, and returns a failure if its base64 is invalid.
// It ignores the media type that the upstream reported, because the gateway may serve the picture under an address of
// its own. A picture of an unknown kind gets no media type. It can be passed on, but not kept.
func usable(img *picture.Image) *upstream.Failure {
	if len(img.Base64) > 0 && !wellFormed(img.Base64) {
		return unusable("a picture that is no base64")
	}
	content, err := img.Reader()
	if err != nil {
		return unusable(err.Error())
	}
	media, size, err := picture.Measure(content)
	if err != nil {
		img.MediaType = ""
		return nil
	}
	img.MediaType = media
	if img.Width == 0 {
		img.Width, img.Height = size.Width, size.Height
	}
	return nil
}

// wellFormed reports whether b is base64 of the standard alphabet, padded.
func wellFormed(b []byte) bool {
	if len(b)%4 != 0 {
		return false
	}
	body := bytes.TrimRight(b, "=")
	if len(b)-len(body) > 2 {
		return false
	}
	for _, c := range body {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '+' && c != '/' {
			return false
		}
	}
	return true
}

// fetch reads a picture from where the upstream has put it. The provider's key is not sent, since the address
// may belong to a store of another party that signs its addresses.
func (a *attempt) fetch(ctx context.Context, img *picture.Image) *upstream.Failure {
	if data, ok := strings.CutPrefix(img.URL, "data:"); ok {
		_, encoded, found := strings.Cut(data, ";base64,")
		b, err := base64.StdEncoding.DecodeString(encoded)
		if !found || err != nil {
			return unusable("a data URL that is none")
		}
		img.Data, img.URL = b, ""
		return nil
	}
	if a.shape == nil {
		return unusable("an address that is not fetched")
	}
	get := upstream.Request{Method: http.MethodGet, Location: img.URL, Owner: a.request.Owner}
	reply, err := a.c.Runtime.Client.Send(ctx, get, a.shape.Authorize, "")
	if err != nil {
		return a.notFetched(engine.FailureOf(err))
	}
	defer reply.Close()
	if reply.Status != http.StatusOK {
		return unusable("a picture that its address does not give")
	}
	body, err := reply.Body()
	if err != nil {
		return a.notFetched(engine.FailureOf(err))
	}
	b, err := io.ReadAll(io.LimitReader(body, maxPicture+1))
	switch {
	case err != nil:
		return a.notFetched(engine.FailureOf(reply.Failed(err)))
	case len(b) > maxPicture:
		return unusable("a picture that is too large")
	}
	img.Data, img.URL = b, ""
	return nil
}

// notFetched returns the failure to fetch a picture, marked so that the request is not sent again, because the picture
// was made and costs money.
func (a *attempt) notFetched(f *upstream.Failure) *upstream.Failure {
	if f.Class == upstream.NotSent {
		f.Class = upstream.MaybeSent
	}
	return f
}

// unusable returns the failure of a reply that has no usable picture. The request may be sent again.
func unusable(detail string) *upstream.Failure {
	return &upstream.Failure{Class: upstream.Transient, Err: dialogue.BadUpstream(detail)}
}

// traits has what the errors of the client's shape depend on.
func (a *attempt) traits() dialogue.Traits {
	return dialogue.Traits{Moderation: a.request.Picture.Refusal}
}

// refusedInBody returns the failure for an error that came inside a 200 reply, or for a reply that broke off.
func (a *attempt) refusedInBody(err error) *upstream.Failure {
	var e *dialogue.Error
	if !errors.As(err, &e) {
		e = dialogue.Incomplete()
		e.Cause = err
	}
	return upstream.InStream(a.traits(), e, a.c.Runtime.Secrets()...)
}
