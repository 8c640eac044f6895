// Package spool holds the files that clients upload: small ones in memory, larger ones on
// disk. A file on disk has no name, so that no other process finds it and it is removed when
// the process ends. The package does not look at the content; providers/picture and
// providers/video/mp4 do.
//
// A File may be read by any number of goroutines at a time. Close it when the last has finished.
//
// # Usage
//
// A handler reads an upload with its limit, passes the File on, and closes it when the request has ended. Small files
// stay in memory, because most uploads are small and a file costs several system calls. The limit is checked while the
// upload arrives, so that a client cannot fill the disk before it is refused.
package spool
