// Package blobs keeps what the gateway has made and hands out by address for a while, pictures above all, and what
// clients have uploaded until it is sent on. A blob is durable once Put has returned, and gone after its expiry. All of
// them together are bounded, and so is the share of each owner.
//
// The contents are in a Backend: files below one directory, or rows of the database that several gateways have (see
// state/journal/postgres). Store counts and bounds what is there.
//
// The package is no cache and no archive, and knows nothing of who may read what.
//
// # Usage
//
// Put stores content with its type and its expiry and returns an ID that cannot be guessed. Open returns it until
// then. Sweep removes what has expired, and DeleteOwner everything of one owner. The whole index is in memory and is
// read from the names of the contents at the start, so that there is no second file that could disagree with them.
//
// # Errors
//
// ErrFull is returned if all contents together would exceed the bound, and a *share.Refused if those of one owner would
// exceed its share. ErrNotFound stands for a content that never was, that has expired or that was deleted, because a
// reader must not learn which.
//
// # Files
//
//	blobs.go writer.go        the store, its bounds, and how a blob is put
//	backend.go directory.go   what a place for blobs must do, and files in a directory
//	name.go                   names of files, which say what a blob is, so that no index is needed
package blobs
