package network

import (
	"net/netip"
	"testing"
)

func TestOnlyAddressesOfThePublicInternetArePublic(t *testing.T) {
	for address, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true,
		"127.0.0.1": false, "::1": false, "0.0.0.0": false, "::": false, "10.0.0.1": false, "172.16.0.1": false,
		"192.168.1.1":     false,
		"169.254.169.254": false, "100.64.0.1": false, "192.0.2.1": false, "224.0.0.1": false, "255.255.255.255": false,
		"fe80::1%eth0": false, "fd00::1": false, "ff02::1": false, "::ffff:127.0.0.1": false, "::127.0.0.1": false,
		"64:ff9b::7f00:1": false, "2002:7f00:1::": false, "2001:db8::1": false,
	} {
		if got := IsPublic(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: got %v, want %v", address, got, want)
		}
	}
	if IsPublic(netip.Addr{}) {
		t.Error("the zero address is public")
	}
}

func TestAddressesInIPv6FormAreFoundInIPv4Networks(t *testing.T) {
	networks := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
	if a := netip.MustParseAddr("::ffff:10.1.2.3"); !IsWithin(Normalize(a), networks) {
		t.Errorf("%s is not within %v", a, networks)
	}
	if a := netip.MustParseAddr("10.2.0.1"); IsWithin(a, networks) {
		t.Errorf("%s is within %v", a, networks)
	}
}
