package pages

import (
	"testing"

	"stagedoor/state/requestlog"
)

func TestRunwaySaysHowLongTheMoneyLasts(t *testing.T) {
	for _, c := range []struct {
		available, perDay int64
		want              string
	}{
		{18_420_000, 790_000, "about 23 days at your current rate of $0.79 a day"},
		{1_000_000, 1_000_000, "about 1 day at your current rate of $1.00 a day"},
		{500_000, 1_000_000, "less than a day at your current rate of $1.00 a day"},
		{5_000_000_000, 1_000_000, "more than 999 days at your current rate of $1.00 a day"},
		{1_000_000, 0, ""},
		{-1, 1_000_000, ""},
	} {
		if got := (&Account{Available: c.available, PerDay: c.perDay}).Runway(); got != c.want {
			t.Errorf("%d left at %d: %q, want %q", c.available, c.perDay, got, c.want)
		}
	}
}

// TestASessionSaysWhereItsAddressIs if the address itself tells it.
func TestASessionSaysWhereItsAddressIs(t *testing.T) {
	for address, want := range map[string]string{"127.0.0.1": "the gateway's machine", "::1": "the gateway's machine",
		"10.1.2.3": "a private network", "fd00::1": "a private network", "::ffff:192.168.0.9": "a private network",
		"100.101.102.103": "a private network", "198.51.100.7": "", "2001:db8::1": "", "": "", "unknown": ""} {
		if got := (Session{Address: address}).Place(); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
	for address, want := range map[string]string{"198.51.100.7": "Berlin, Germany", "10.1.2.3": "a private network"} {
		if got := (Session{Address: address, Known: "Berlin, Germany"}).Place(); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}

func TestALoggedRequestNamesTheKeyOrThePageThatMadeIt(t *testing.T) {
	for _, c := range []struct{ user, key, name, want string }{
		{"anna", "key_0123456789abcdef", "laptop", "laptop"}, {"anna", "live_7", "", "page /live"},
		{"anna", "chat_7", "", "page /chat"}, {"anna", "key_0123456789abcdef", "", ShortID("key_0123456789abcdef")},
		{"", "key_0123456789abcdef", "laptop", ""},
	} {
		r := &RequestRow{Record: requestlog.Record{User: c.user, Key: c.key, KeyName: c.name}}
		if got := r.KeyLabel(); got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}
