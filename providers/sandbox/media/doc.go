// Package media serves the simulator's pictures and videos over HTTP in the protocols of the images routes, the image
// vendor, the videos routes and Veo. Pictures are read and written with the codecs of the shapes, so a request that breaks
// a rule of the documents is refused. The routes for videos are written from the vendors' descriptions.
//
// It accepts any key. Two routes are its own:
//
//	GET /sandbox/jobs             submissions, polls and downloads of every job
//	GET /sandbox/pictures/{name}  the pictures whose addresses replies contain
package media
