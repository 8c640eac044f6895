//go:build !linux

package pgserver

import "syscall"

// dieWithParent does nothing where a process cannot be tied to its parent.
func dieWithParent(*syscall.SysProcAttr) {}
