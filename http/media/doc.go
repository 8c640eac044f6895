// Package media has the HTTP handlers for pictures and videos. A handler checks a request, passes it to the actors in
// its neutral form and writes the reply in the client's shape, which is its API format. The package also reads uploads
// within limits and serves pictures at signed addresses. actors/images and actors/videojob run the requests, and
// state/blobs stores pictures.
package media
