//go:build !linux

package journal

import "os"

// datasync makes what was written to f durable.
func datasync(f *os.File) error { return f.Sync() }
