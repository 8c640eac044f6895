// Package dialogue is the neutral form in which the shapes meet: a request is
// turns of ordered parts, a reply is one sequence of events, whether it was
// streamed or came whole. It is the union of the shapes, not any one of them,
// and knows no wire format: that is what the packages under providers/shapes
// are for. Everything in it belongs to one request; nothing is shared.
package dialogue
