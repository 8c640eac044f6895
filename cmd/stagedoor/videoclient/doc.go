// Package videoclient is the commands' side of video jobs: it asks a gateway over
// its public API, like any other client, and goes on after a connection was lost.
// A creation is sent again under the key it was sent with, an observation is
// taken up where it broke off, a download goes on at the byte it has come to.
//
// It prints nothing and knows no terminal.
package videoclient
