// Package faultd is an upstream that misbehaves to order. It speaks HTTP/1.1 byte by
// byte over TCP, because the faults worth testing are those an HTTP library would not
// let a server commit: a reset in the middle of a chunk, a lying length, a stall, a
// header of 70 KiB.
//
// The first segment of a request's path picks the script, so that one server plays
// any number of faults at once. It is for tests; what a good provider says is in
// Wire, in each shape, as material for the scripts.
package faultd
