// Package mask decides whether a picture is a mask as the image vendor wants it
// (imagegen-and-oauth.md 4.2): of the dimensions of its image, black and white
// only, with enough black.
//
// It is made for hostile files. Headers are looked at before anything else, no
// pixel is decoded of a file whose dimensions are out of bounds, and a PNG is
// read row by row, so that it costs memory for two rows whatever it expands to.
// It does not show, convert or repair pictures, and it is not for the masks of
// the images shape, which say with transparency what is to be changed.
package mask
