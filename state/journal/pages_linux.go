package journal

import (
	"context"
	"syscall"

	"go.etcd.io/bbolt"
)

// ReleasePages takes the pages of the file that were read out of the memory of the process. They count as memory that
// it uses although they only repeat what the system's cache has, and opening a store with many records reads nearly all
// of them. A page that is read again costs a fault of about a microsecond. A call that fails has no effect.
func (b *Bolt) ReleasePages() {
	release, err := b.use(context.Background())
	if err != nil {
		return
	}
	defer release()
	_ = b.db.View(func(tx *bbolt.Tx) error { // the mapping stays where it is meanwhile
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, b.db.Info().Data, uintptr(tx.Size()), syscall.MADV_DONTNEED)
		return nil
	})
}
