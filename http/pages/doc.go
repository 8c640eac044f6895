// Package pages draws what people see in a browser: one frame, one stylesheet,
// one type per page. It escapes, sets the headers that every page needs, and
// serves its own assets; nothing on a page comes from anywhere else, and none
// has a script.
//
// It is not where anything is decided: whoever serves a page fills in its type.
//
// A new page is a type with a method frame and a template of the name it says.
package pages
