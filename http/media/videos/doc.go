// Package videos checks what clients ask of video jobs and writes jobs as clients see them. It reads and writes bytes
// and knows neither HTTP nor actors, so that a reply, an event and a message show the same object for a job.
//
// # Usage
//
// Check returns the Ask of a body, with every mistake named by its member. Body turns the fields of a form into such
// a body first, so that forms and JSON have one set of rules. Object, List, Page and Deleted write replies.
// AppendObject appends to a buffer that events use again.
//
// The defaults are the vendor's: a client that leaves out the size or the length gets what it would get there.
//
// # Errors
//
// A *dialogue.Error names the member that is wrong.
//
// # Files
//
//	ask.go form.go source.go membernames.go   what a client asks for, in JSON or as a form, and its picture
//	object.go page.go                         a job and a list of jobs as clients see them
package videos
