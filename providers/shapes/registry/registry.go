// Package registry lists the text shapes the gateway knows: the one line that a
// sixth shape adds outside its own folder.
package registry

import (
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/chat"
	"stagedoor/providers/shapes/completions"
	"stagedoor/providers/shapes/gemini"
	"stagedoor/providers/shapes/messages"
	"stagedoor/providers/shapes/responses"
)

// All are the shapes.
var All = []shapes.Shape{chat.Shape, responses.Shape, completions.Shape, messages.Shape, gemini.Shape}

// ByName finds a shape.
func ByName() map[dialogue.Shape]shapes.Shape {
	m := make(map[dialogue.Shape]shapes.Shape, len(All))
	for _, s := range All {
		m[s.Name()] = s
	}
	return m
}
