// Package draw makes the sandbox's pictures: a drawing that depends on nothing
// but its Spec, so that one prompt and seed give the same bytes on every
// machine, and the edits that the image routes know. It is quick rather than
// clever: flat shapes that a compressor likes, the prompt written below them.
//
// It is not an image library. It makes and changes whole pictures of bounded
// size, all of them *image.NRGBA, whose pixels an edit can leave exactly as they
// were (premultiplied colours could not).
package draw
