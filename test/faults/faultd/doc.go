// Package faultd is an upstream that misbehaves to order. It speaks HTTP/1.1 byte by
// byte over TCP, because the faults worth testing are those an HTTP library would not
// let a server commit: a reset in the middle of a chunk, a lying length, a stall, a
// header of 70 KiB.
//
// The first segment of a request's path picks the script, so that one server plays
// any number of faults at once. It is for tests; what a good provider says is in
// Wire, in each shape, as material for the scripts.
//
// # Usage
//
// Start returns a Server on a free port. A Script gets the connection after the head of a request was read, and
// writes what it likes to it. NewAuthority makes certificates, good and bad ones, for the scripts that speak TLS. H2
// speaks HTTP/2 frame by frame, and Hole is an address at which no handshake ever ends.
//
// # Files
//
//	server.go wire.go   scripts, and the replies of each shape
//	h2.go secure.go     HTTP/2 frame by frame, certificates
//	hole.go             an address that accepts nothing
package faultd
