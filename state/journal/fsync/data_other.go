//go:build !linux

package fsync

import "os"

// Data returns once the contents of f survive a power cut.
func Data(f *os.File) error { return f.Sync() }
