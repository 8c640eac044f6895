// Package blobs keeps what the gateway has made and hands out by address for a while, pictures above all, and what
// clients have uploaded until it is sent on. A blob is durable once Put has returned, and gone after its expiry. All of
// them together are bounded, and so is the share of each owner.
//
// The contents are in a Backend: files below one directory, or rows of the database that several gateways have (see
// state/journal/postgres). Store counts and bounds what is there.
//
// The package is no cache and no archive, and knows nothing of who may read what.
package blobs
