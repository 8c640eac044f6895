package imagegen

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/shapes"
)

// Shape serves requests for pictures by upstreams that speak the image vendor's API.
var Shape = &picture.Shape{Name: Name, MakesPictures: true, Codec: shape{}}

type shape struct{}

// Descriptor holds the facts about the shape. Its vendor has no request that costs nothing.
var Descriptor = shapes.Descriptor{
	Name: Name, Scope: "imagegen", KeyHeader: "Api-Key",
	Telemetry: shapes.Telemetry{Operation: "image_generation", Vendor: string(Name)},
}

// MaxImages implements picture.Codec. All models of the vendor make the same number in one call, and a
// description has one picture.
func (shape) MaxImages(r *picture.Request, model string) int {
	if r.Operation == picture.Describe {
		return 1
	}
	return maxImages
}

// Authorize implements picture.Codec.
func (shape) Authorize(h http.Header, key string) { h.Set("Api-Key", key) }

// DecodeError implements picture.Codec. The vendor's errors are {"error":"text"}, which
// chunks.DecodeError reads as well as other forms. With status 422 the vendor refuses prompts and
// pictures as unsafe.
func (shape) DecodeError(status int, header http.Header, body []byte) *dialogue.Error {
	e := chunks.DecodeError(status, header, body)
	if status == http.StatusUnprocessableEntity {
		e.Type, e.Code, e.Param = dialogue.TypeInvalidRequest, "content_policy_violation", ""
	}
	return e
}

// Event implements picture.Codec. It ignores all events, because the vendor does not stream.
func (shape) Event(r *picture.Request, name string, data []byte) (*picture.Event, error) {
	return nil, nil
}

// isV3 reports whether a model is of the vendor's third generation, whose routes and fields differ. Its
// names end in "v3" or "V_3"; all other names count as older models.
func isV3(model string) bool {
	name := strings.ToLower(model)
	return strings.HasSuffix(name, "v3") || strings.HasSuffix(name, "v_3")
}

// Encode implements picture.Codec. A request of a client of this shape keeps all its fields if the
// model is of the same generation. Any other request is converted first. The error names a field that
// the vendor does not have, or the model if the vendor has no route with which it does the operation.
func (shape) Encode(ctx context.Context, r *picture.Request, model string,
	rep *dialogue.Report) (*picture.Call, error) {
	e := newEncoder(r, model, rep)
	if !e.own() {
		if err := e.convert(ctx); err != nil {
			return nil, err
		}
	}
	if e.route = findRoute(e.operation, e.v3); e.route == nil {
		return nil, dialogue.Unsupported("model", "the provider's model of this name cannot do that")
	}
	if e.operation == picture.Edit && slices.Contains(models, model) && !slices.Contains(editModels, model) {
		return nil, dialogue.Unsupported("model", "the provider of this model cannot edit pictures with a mask")
	}
	call := &picture.Call{Path: e.route.upstream}
	switch {
	case e.passthrough():
		body, err := e.patch()
		if err != nil {
			return nil, err
		}
		call.Body, call.Passthrough = picture.JSON(body), true
	case e.route.Encoding&Form == 0:
		call.Body = picture.JSON(e.json())
	default:
		call.Body = e.form()
	}
	return call, nil
}
