// Package mask checks and converts masks: pictures that mark which part of another picture a
// model may change. Check applies the rules of the image vendor's routes,
// where black marks the part to change. FromAlpha and ToAlpha
// convert between such masks and the masks of the images shape, where that part is transparent.
// The package does not repair masks.
//
// # Hostile files
//
// Clients send masks, so a file can be made to cost much. Headers are read first. A file is
// refused before a pixel is decoded if its dimensions are above a bound, or if it is too short
// for them. The decoders of the standard library and of x/image then hold the whole picture:
// at most bytesPerPixel for each of maxPixels. At most two pictures are in memory at a time
// in the whole process; docs/limits.md states the sum.
//
// # Concurrency
//
// All functions are safe for concurrent use. They wait while two other masks are in memory, or
// one of the same owner. Owners take turns, so no owner waits for all masks of another. An owner
// is the user of a key, or the key if it has no user.
//
// # Files
//
//	mask.go                                          the check
//	decode.go exact.go lossy.go convert.go           decoding, counting of transparent pixels, conversion
package mask
