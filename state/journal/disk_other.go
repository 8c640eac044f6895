//go:build !linux && !darwin && !freebsd

package journal

import (
	"errors"
	"os"
)

// FreeSpace has no portable form; the guard against a full disk is off here.
func FreeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }

// unlock has no portable form; the lock ends with the process.
func unlock(*os.File) {}
