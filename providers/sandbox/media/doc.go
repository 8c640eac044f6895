// Package media puts the sandbox's pictures and videos behind HTTP, in the
// protocols of the upstreams that the gateway speaks to: the images routes, the
// image vendor's, the videos routes, and Veo's long-running operations with the
// third shape's picture output beside them. It is written from the vendors'
// descriptions and shares no code with the gateway's own shapes, so that a
// mistake in one of the two shows.
//
// It takes any key, and is lenient where a vendor is strict: it checks what it
// cannot work without. Below /sandbox it tells what was asked of it:
//
//	GET /sandbox/jobs             submissions, polls and downloads of every job
//	GET /sandbox/pictures/{name}  the pictures that replies have addresses of
package media
