//go:build !linux

package journal

// mappedAhead is as in pages_linux.go. Elsewhere the file might be as long as its mapping, so none is set, and
// commits wait for backups when the file outgrows its mapping.
const mappedAhead = 0

// ReleasePages has no portable form and does nothing.
func (b *Bolt) ReleasePages() {}
