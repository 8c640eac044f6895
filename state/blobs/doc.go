// Package blobs keeps what the gateway has made and hands out by address for a
// while: pictures, above all. A blob is a file below one directory, durable once
// Put has returned, and gone after its expiry; all of them together are bounded.
// It is no cache and no archive, and knows nothing of who may read what.
package blobs
