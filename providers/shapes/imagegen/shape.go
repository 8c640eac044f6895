package imagegen

import (
	"net/http"
	"strings"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/shapes"
)

// Shape is the upstream side of the shape.
var Shape = &picture.Shape{Name: Name, MakesPictures: true, Codec: shape{}}

type shape struct{}

// Descriptor holds the facts about the shape. Its vendor has no request that costs nothing.
var Descriptor = shapes.Descriptor{
	Name: Name, Scope: "imagegen", KeyHeader: "Api-Key",
	Telemetry: shapes.Telemetry{Operation: "image_generation", Vendor: string(Name)},
}

// MaxImages implements picture.Codec.
func (shape) MaxImages(r *picture.Request, _ string) int {
	if r.Operation == picture.Describe {
		return 1
	}
	return maxImages
}

// Authorize implements picture.Codec.
func (shape) Authorize(h http.Header, key string) { h.Set("Api-Key", key) }

// DecodeError implements picture.Codec. A 422 is a refusal for safety, whose body
// is {"error":"text"}.
func (shape) DecodeError(status int, header http.Header, body []byte) *dialogue.Error {
	e := chunks.DecodeError(status, header, body)
	if status == http.StatusUnprocessableEntity {
		e.Type, e.Code, e.Param = dialogue.TypeInvalidRequest, "content_policy_violation", ""
	}
	return e
}

// Event implements picture.Codec. The vendor streams nothing.
func (shape) Event(*picture.Request, string, []byte) (*picture.Event, error) { return nil, nil }

// isV3 reports whether a model is of the third generation, by any of its names.
func isV3(model string) bool {
	name := strings.ToLower(model)
	return strings.HasSuffix(name, "v3") || strings.HasSuffix(name, "v_3")
}

// Encode implements picture.Codec.
func (shape) Encode(r *picture.Request, model string, rep *dialogue.Report) (*picture.Call, error) {
	e := newEncoder(r, model, rep)
	if !e.own() {
		if err := e.convert(); err != nil {
			return nil, err
		}
	}
	if e.route = findRoute(e.operation, e.v3); e.route == nil {
		return nil, dialogue.Unsupported("model", "the provider's model of this name cannot do that")
	}
	call := &picture.Call{Path: e.route.upstream}
	switch {
	case e.passthrough():
		body, err := e.patch()
		if err != nil {
			return nil, err
		}
		call.Body = picture.JSON(body)
	case e.route.Encoding&Form == 0:
		call.Body = picture.JSON(e.json())
	default:
		call.Body = e.form()
	}
	return call, nil
}
