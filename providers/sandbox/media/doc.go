// Package media serves the simulator's pictures and videos over HTTP in the protocols of the images routes, the image
// vendor, the videos routes and Veo. It is written from the vendors' descriptions and shares no code with the gateway's
// own shapes, so that a mistake on one side shows.
//
// It accepts any key and checks only what it needs. Two routes are its own:
//
//	GET /sandbox/jobs             submissions, polls and downloads of every job
//	GET /sandbox/pictures/{name}  the pictures whose addresses replies contain
package media
