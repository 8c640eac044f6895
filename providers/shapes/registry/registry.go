// Package registry lists the shapes that the gateway knows. A new shape adds one line here, and
// nothing else outside its own folder. Only cmd and tests should import it for its lists: code that
// serves one request gets its *shapes.Shape from the route or from the catalogue, so that no shape
// depends on another. The lists are built at start, never change, and are safe for concurrent
// reading.
//
// # Usage
//
// All has the shapes of text and Media the descriptors of others. Routes, scopes, headers of keys, dialects of errors
// and the words of the configuration are all read from these lists. A test that adds a toy shape (test/toyshape) shows
// that no other list has to be changed.
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

// Media lists the other shapes: those of pictures, videos and embeddings. They have no
// conversation, so they do not implement the parts of a shapes.Shape. Their handlers are http/media
// and http/embeddings.
var Media = []*shapes.Descriptor{
	&images.Descriptor, &videos.Descriptor, &imagegen.Descriptor, &veo.Descriptor, &embeddings.Descriptor,
}

// Embeddings lists the forms of requests for embeddings. providers/vector describes a form. Either
// serves clients of the other.
var Embeddings = []*vector.Dialect{embeddings.Dialect, gemini.Embeddings}

// Pictures lists the shapes of upstreams that make pictures. providers/picture describes them.
// gemini and chat appear again, because some of their models answer a conversation with a picture.
var Pictures = []*picture.Shape{images.Shape, gemini.Pictures, imagegen.Shape, chat.Pictures}

// ByName returns the text shapes by name.
func ByName() map[dialogue.Shape]*shapes.Shape {
	m := make(map[dialogue.Shape]*shapes.Shape, len(All))
	for _, s := range All {
		m[s.Name] = s
	}
	return m
}

// Describe returns the descriptor of a text or media shape, or nil if there is no such shape. The
// configuration calls it with names that an administrator typed.
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

// KeyHeaders returns the headers, besides Authorization, in which clients may send an API key:
// X-Api-Key, X-Goog-Api-Key. http/auth accepts each of them on every route, because clients are
// often pointed at a gateway by changing nothing but the address.
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

// Scopes returns the scopes that API keys can have, without duplicates: those of the shapes and
// ScopeModels.
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
