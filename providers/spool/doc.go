// Package spool holds the files that clients upload: small ones in memory, larger ones on
// disk. A file on disk has no name, so that no other process finds it and it is removed when
// the process ends. The package does not look at the content; providers/picture and
// providers/video/mp4 do.
//
// A File may be read by any number of goroutines at a time. Close it when the last has finished.
package spool
