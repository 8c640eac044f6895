// Package transfer is what adapters of video providers have in common: bodies
// with files in them, which are read while they are sent, and downloads, which
// are never held. It knows no provider's shape.
package transfer
