// Package redo is the write-ahead log of a store that collects the changes of many commits before it puts them into
// its own file. A commit is durable after one write and one sync at the end of a file whose blocks are allocated
// already. The store behind it (bbolt) would need two syncs and would write every page that the commit touched.
// BenchmarkCommit in package journal measures the difference.
//
// # Usage
//
// Read returns the commits that the last process logged and did not put into its file. New then returns the Log of this
// process. The store calls Append for each commit and Switch when it begins to put the logged changes into its file.
// The log does not interpret what it holds: changes are bytes that the store encodes and decodes.
//
// # Format
//
// The log consists of two files. While the store takes over the changes of one file, commits go on in the other. Each
// file begins with a header:
//
//	magic 8 | ID of the store 16 | CRC32C of both 4 | zeros 4
//
// Frames follow, one for each commit:
//
//	magic 4 | CRC32C of the rest 4 | LSN 8 | length of the changes 8 | changes | zeros to a multiple of 8
//
// 24 zeros follow the last frame until the next frame overwrites them. A file is overwritten from its beginning once
// the store has taken over all that it holds. The LSNs of frames that remain from before are too low to be mistaken.
//
// # Concurrency
//
// A Log is not safe for concurrent use, because a store commits under a lock of its own.
//
// # Errors
//
// After ErrNoSpace the log is as it was before the call. After any other error of Append the outcome is unknown, and
// the store must not be written any more. Read returns a *DamageError if a commit may be missing.
package redo
