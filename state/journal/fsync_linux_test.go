package journal

import (
	"errors"
	"runtime"
	"syscall"
	"testing"
	"unsafe"
)

// withoutSync runs fn on a thread on which the kernel fails every fsync with EIO,
// as a dying disk does. The thread ends with fn.
func withoutSync(t *testing.T, fn func()) {
	t.Helper()
	const (
		prSetNoNewPrivs, prSetSeccomp, modeFilter = 38, 22, 2 // linux/prctl.h, linux/seccomp.h
		retErrno, retAllow                        = 0x00050000, 0x7fff0000
		load, equal, answer                       = syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS,
			syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, syscall.BPF_RET | syscall.BPF_K
	)
	filter := []syscall.SockFilter{
		{Code: load}, // the number of the system call
		{Code: equal, Jt: 2, K: syscall.SYS_FDATASYNC},
		{Code: equal, Jt: 1, K: syscall.SYS_FSYNC},
		{Code: answer, K: retAllow},
		{Code: answer, K: retErrno | uint32(syscall.EIO)},
	}
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	done := make(chan syscall.Errno)
	go func() {
		runtime.LockOSThread() // and never unlocked: the filter is the thread's for good
		_, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0)
		if errno == 0 {
			_, _, errno = syscall.RawSyscall6(syscall.SYS_PRCTL, prSetSeccomp, modeFilter,
				uintptr(unsafe.Pointer(&program)), 0, 0, 0)
		}
		if errno == 0 {
			fn()
		}
		done <- errno
	}()
	if errno := <-done; errno != 0 {
		t.Fatalf("the kernel takes no filter: %v", errno)
	}
}

// TestFailedSyncPoisons: a commit whose fsync failed is not acknowledged and not
// tried again, because the contents of the disk are unknown. Commits acknowledged
// before are there after a restart.
func TestFailedSyncPoisons(t *testing.T) {
	dir := t.TempDir()
	b := openBolt(t, dir, Options{})
	if err := write(b, Key, "before", "v"); err != nil {
		t.Fatal(err)
	}
	withoutSync(t, func() {
		if err := write(b, Key, "during", "v"); !errors.Is(err, ErrPoisoned) || !errors.Is(err, syscall.EIO) || errors.Is(err, ErrReadOnly) {
			t.Errorf("got %v, want ErrPoisoned with EIO", err)
		}
	})
	if err := write(b, Key, "after", "v"); !errors.Is(err, ErrPoisoned) {
		t.Errorf("the disk is well again: got %v, want ErrPoisoned still", err)
	}
	if _, err := b.Get(ctx, Key, []byte("during")); !errors.Is(err, ErrPoisoned) {
		t.Errorf("reading: got %v, want ErrPoisoned", err)
	}
	b.Close()
	again := openBolt(t, dir, Options{})
	if _, err := again.Get(ctx, Key, []byte("before")); err != nil {
		t.Errorf("what was acknowledged: %v", err)
	}
	if _, err := again.Get(ctx, Key, []byte("after")); !errors.Is(err, ErrNotFound) {
		t.Errorf("what was refused: %v", err)
	}
}
