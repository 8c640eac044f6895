// Package picture is the neutral form of picture work: a Request is what any
// client can ask for (make, edit, remix, describe, ...), a Reply is what any
// upstream can answer. Doors in http/media write the one and read the other; a
// Shape speaks for one kind of upstream, and the embedded sandbox is a
// Simulator. It is what providers/dialogue is for text, and knows no vendor.
//
// Pictures are large. A File is held once, in memory or on disk, and is read as
// often as needed; a Form is sent without being built.
package picture
