package places

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The files of testdata were written by github.com/maxmind/mmdbwriter v1.2.0. places.mmdb has names in English and
// German for networks that are reserved for documentation, and one that is 200 bytes long. other.mmdb is empty and of
// the type Test-ASN.

func TestAnAddressIsFoundInItsNetwork(t *testing.T) {
	f, err := Open("testdata/places.mmdb")
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{"198.51.100.7": "Berlin, Germany",
		"::ffff:198.51.100.7": "Berlin, Germany", "203.0.113.255": "Japan", "2001:db8::1": "São Paulo, Brazil",
		"192.0.2.1": strings.Repeat("x", maxName), "198.51.101.1": "", "fe80::1%eth0": ""} {
		if got := f.Of(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
	var none *File
	if none.Of(netip.MustParseAddr("198.51.100.7")) != "" || f.Of(netip.Addr{}) != "" {
		t.Error("no file, or no address, has a place")
	}
}

func TestAFileThatHasNoPlacesIsRefused(t *testing.T) {
	if _, err := Open("testdata/other.mmdb"); !errors.Is(err, ErrNoPlaces) {
		t.Errorf("got %v", err)
	}
	damaged := filepath.Join(t.TempDir(), "x.mmdb")
	if err := os.WriteFile(damaged, []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{damaged, "testdata/none.mmdb", "testdata"} {
		if _, err := Open(path); err == nil {
			t.Errorf("%s is opened", path)
		}
	}
}
