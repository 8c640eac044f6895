// Package transfer has the parts that the adapters of video providers share: request bodies
// that contain files, which are read while they are sent, and downloads, which are passed on
// without being buffered. It knows no provider's shape.
package transfer
