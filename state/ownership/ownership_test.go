package ownership_test

import (
	"os"
	"path/filepath"
	"testing"

	"stagedoor/state/ownership"
)

// TestNewFilesHaveTheOwnerOfTheirDirectory is about another owner only if it runs as root, as CI does.
func TestNewFilesHaveTheOwnerOfTheirDirectory(t *testing.T) {
	dir := t.TempDir()
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, 65534, 65533); err != nil {
			t.Fatal(err)
		}
	}
	below := filepath.Join(dir, "a", "b")
	if err := ownership.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(below, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := ownership.File(f); err != nil {
		t.Fatal(err)
	}
	top, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	uid, gid, _ := ownership.Of(top)
	for _, path := range []string{filepath.Join(dir, "a"), below, f.Name()} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if u, g, ok := ownership.Of(info); !ok || u != uid || g != gid {
			t.Errorf("%s belongs to %d:%d, want %d:%d", path, u, g, uid, gid)
		}
	}
	if err := ownership.MkdirAll(filepath.Join(f.Name(), "c"), 0o700); err == nil {
		t.Error("a directory was made below a file")
	}
}
