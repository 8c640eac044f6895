// Package media has the HTTP handlers for pictures and videos. A handler checks a request, passes it to the actors in
// its neutral form and writes the reply in the client's shape, which is its API format. The package also reads
// uploads within limits and serves pictures at signed addresses. actors/images and actors/videojob run the requests,
// and state/blobs stores pictures.
//
// # Pictures
//
// GenerateImages, EditImages and Imagegen read a request of their shape into picture.Request and have actors/images
// run it. A client may want a picture by value or by address. Addresses are signed, so that Content serves them
// without a key, and they end after an hour.
//
// # Videos
//
// Creating a job costs money, so a maker checks everything it can before the job exists: the body or the form, the
// size of the picture it begins with, the model and the key's limits. Uploads go to state/blobs before the job is
// stored, so that they outlive the process. A job may outlive the process, so its reply is only its id and its
// status.
//
// # Concurrency
//
// Handlers is safe for concurrent use, and a requestContext belongs to one request.
//
// # Limits
//
// A form is read part by part. Each kind of part has its own bound, and all texts together have one. An upload must
// keep a least rate.
//
// # Files
//
//	handlers.go request.go              what all requests have in common: key, limits, plan, refusal
//	images.go imagegen.go               pictures in the two shapes
//	videos.go videoscreate.go           new jobs
//	videosread.go videoscontent.go      lists, single jobs, waiting for a change, content
//	content.go form.go upload.go        signed addresses, forms, slow uploads
package media
