// Package spool holds what a client uploads: a little of it in memory, more on
// disk, in a file that nobody else can find. It does not know what is in it; see
// providers/picture and providers/video/mp4 for that.
package spool
