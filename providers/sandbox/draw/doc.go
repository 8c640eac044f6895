// Package draw makes and edits the simulator's pictures. A picture depends on nothing but its Spec, so one prompt and
// seed give the same bytes on every machine: discs on a gradient, with the prompt written below them.
//
// It is not an image library. It scales by the nearest pixel and handles whole pictures of bounded size, all of them
// *image.NRGBA, whose pixels an edit can leave exactly as they were (premultiplied colours could not).
package draw
