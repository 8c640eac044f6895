// Package admin tests administration from outside: the API with its token and the
// commands, on the real program, its sandbox and its data directory.
package admin
