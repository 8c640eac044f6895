// Package text holds the doors of the five text shapes: they read a request as
// far as routing needs it, hand it to the translator and write back what comes.
// Beside them stand the models lists, the token counts and the life after the
// reply that the responses shape has: retrieve, cancel, delete, resume. What a
// request means is the shapes' business; what happens to it, the translator's.
package text
