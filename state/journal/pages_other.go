//go:build !linux

package journal

// ReleasePages has no portable form and does nothing.
func (b *Bolt) ReleasePages() {}
