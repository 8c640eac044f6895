//go:build linux || darwin || freebsd

package fsync

import "os"

// Dir returns once the file names in dir survive a power cut. A file whose name is lost takes every acknowledged write
// with it, however often the file itself was synced.
func Dir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
