package journal

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestReleasedPagesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	b := filled(t, dir)
	for i := range 200 {
		if err := write(b, Key, "large"+strconv.Itoa(i), strings.Repeat("v", 16<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = openBolt(t, dir, Options{})
	want := export(t, b)
	read := resident(t, dir)
	b.ReleasePages()
	if left := resident(t, dir); read < 3<<10 || left > read/4 {
		t.Errorf("the file takes %d KiB of memory once it was read, and %d KiB after the release", read, left)
	}
	if export(t, b) != want {
		t.Error("after the release other records are read")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b.ReleasePages() // of a store that is closed
}

// resident returns the KiB of a store's file that the memory of the process has.
func resident(t *testing.T, dir string) (kib int) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, mapping, found := strings.Cut(string(maps), filepath.Join(dir, FileName)+"\n")
	_, rss, _ := strings.Cut(mapping, "\nRss:")
	words := strings.Fields(rss)
	if !found || len(words) == 0 {
		t.Fatalf("%s is not mapped", dir)
	}
	if kib, err = strconv.Atoi(words[0]); err != nil {
		t.Fatal(err)
	}
	return kib
}
