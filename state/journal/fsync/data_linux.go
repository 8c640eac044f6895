package fsync

import (
	"os"
	"syscall"
)

// Data returns once the contents of f survive a power cut. It skips metadata that reading the contents does not need,
// such as the modification time, so it is cheap for a file whose blocks are allocated.
func Data(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if err != syscall.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
