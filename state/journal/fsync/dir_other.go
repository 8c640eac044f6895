//go:build !linux && !darwin && !freebsd

package fsync

// Dir does nothing here, because not every system can sync a directory.
func Dir(string) error { return nil }
