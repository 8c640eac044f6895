// Package transfer has the parts that the adapters of video providers share: request bodies
// that contain files, which are read while they are sent, and downloads, which are passed on
// without being buffered. It knows no provider's shape.
//
// # Usage
//
// An adapter builds a Body or a Form, whose Len is sent as Content-Length, and passes its Open to
// the client, which calls it again if it sends a request again. A file is opened only when the
// reader reaches it. NewContent makes the download out of a reply.
//
// # Errors
//
// InvalidReply is for a reply that the adapter cannot read. Such a submission is not repeated,
// because the provider may have begun the job, and a job must not be paid for twice.
package transfer
