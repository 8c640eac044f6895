// Package media holds the doors of the media shapes: they check what a client
// wants made, hand it to the actors as its neutral form, and write the answer in
// the client's own shape. Uploads are read with limits here; how pictures are
// made and kept is the business of actors/images and state/blobs.
package media
