package webhook

import (
	"net/netip"
	"testing"
)

func TestOnlyPublicAddressesAreCalled(t *testing.T) {
	allow := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/32")}
	for address, want := range map[string]bool{
		"8.8.8.8:443": true, "1.1.1.1:80": true, "[2606:4700::1111]:443": true, "[::ffff:8.8.8.8]:443": true,

		"127.0.0.1:80": false, "127.9.9.9:80": false, "[::1]:80": false, "0.0.0.0:80": false, "[::]:80": false,
		"10.0.0.1:80": false, "172.16.0.1:80": false, "172.31.255.255:80": false, "192.168.1.1:80": false,
		"169.254.169.254:80": false, "100.64.0.1:80": false, "100.100.100.200:80": false, "192.0.0.192:80": false,
		"198.18.0.1:80": false, "224.0.0.1:80": false, "240.0.0.1:80": false, "255.255.255.255:80": false,
		"192.0.2.1:80": false, "198.51.100.1:80": false, "203.0.113.1:80": false, "0.1.2.3:80": false,
		"[fe80::1%eth0]:80": false, "[fc00::1]:80": false, "[fd00:ec2::254]:80": false, "[ff02::1]:80": false,
		"[::ffff:127.0.0.1]:80": false, "[::ffff:10.0.0.1]:80": false, "[::127.0.0.1]:80": false,
		"[64:ff9b::7f00:1]:80": false, "[64:ff9b:1::1]:80": false, "[2002:7f00:1::]:80": false,
		"[2001:0:1::1]:80":        false,
		"[::ffff:0:127.0.0.1]:80": false, "[fec0::1]:80": false, "[2001:db8::1]:80": false, "[100::1]:80": false,

		"10.1.2.3:80": true, "[::ffff:10.1.2.3]:80": true, "10.2.0.1:80": false, "[fd00:1::5]:443": true,
		"[fd00:2::5]:443": false,
		"":                false, "localhost:80": false, "/run/socket": false,
	} {
		if err := (guard{allow}).control("tcp", address, nil); (err == nil) != want {
			t.Errorf("%s: %v, want %v", address, err, want)
		}
	}
}
