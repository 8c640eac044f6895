// Package registry lists the shapes that the gateway knows. A new shape adds one line here, and
// nothing else outside its own folder.
package registry

import (
	"slices"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/chat"
	"stagedoor/providers/shapes/completions"
	"stagedoor/providers/shapes/embeddings"
	"stagedoor/providers/shapes/gemini"
	"stagedoor/providers/shapes/imagegen"
	"stagedoor/providers/shapes/images"
	"stagedoor/providers/shapes/messages"
	"stagedoor/providers/shapes/responses"
	"stagedoor/providers/shapes/veo"
	"stagedoor/providers/shapes/videos"
	"stagedoor/providers/vector"
)

// All lists the text shapes.
var All = []*shapes.Shape{
	chat.Shape,
	responses.Shape,
	completions.Shape,
	messages.Shape,
	gemini.Shape,
}

// Media lists the other shapes: those of pictures, videos and embeddings.
var Media = []*shapes.Descriptor{
	&images.Descriptor, &videos.Descriptor, &imagegen.Descriptor, &veo.Descriptor, &embeddings.Descriptor,
}

// Embeddings lists the forms of requests for embeddings.
var Embeddings = []*vector.Dialect{embeddings.Dialect, gemini.Embeddings}

// Pictures lists the shapes of upstreams that make pictures.
var Pictures = []*picture.Shape{images.Shape, gemini.Pictures, imagegen.Shape, chat.Pictures}

// ByName returns the text shapes by name.
func ByName() map[dialogue.Shape]*shapes.Shape {
	m := make(map[dialogue.Shape]*shapes.Shape, len(All))
	for _, s := range All {
		m[s.Name] = s
	}
	return m
}

// Describe returns the descriptor of a shape, or nil if there is no such shape.
func Describe(name dialogue.Shape) *shapes.Descriptor {
	for _, s := range All {
		if s.Name == name {
			return &s.Descriptor
		}
	}
	for _, d := range Media {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// Names returns the names of all shapes, those of text first.
func Names() []string {
	var names []string
	for _, s := range All {
		names = append(names, string(s.Name))
	}
	for _, d := range Media {
		names = append(names, string(d.Name))
	}
	return names
}

// KeyHeaders returns the headers, besides Authorization, in which clients may send an API key.
func KeyHeaders() []string {
	var headers []string
	add := func(d *shapes.Descriptor) {
		if d.KeyHeader != "" && !slices.Contains(headers, d.KeyHeader) {
			headers = append(headers, d.KeyHeader)
		}
	}
	for _, s := range All {
		add(&s.Descriptor)
	}
	for _, d := range Media {
		add(d)
	}
	return headers
}

// ScopeModels is the scope of the lists of models.
const ScopeModels = "models"

// Scopes returns the scopes that API keys can have: those of the shapes and ScopeModels.
func Scopes() []string {
	var scopes []string
	for _, s := range All {
		scopes = append(scopes, s.Scope)
	}
	for _, d := range Media {
		if d.Scope != "" && !slices.Contains(scopes, d.Scope) {
			scopes = append(scopes, d.Scope)
		}
	}
	return append(scopes, ScopeModels)
}
