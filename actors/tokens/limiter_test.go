package tokens

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

var (
	begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ada   = loginSubjects(Login{Username: "Ada"})[0]
)

func TestPausesGrowToAQuarterOfAnHour(t *testing.T) {
	l, now := newLimiter(10), begin
	for i := range 5 {
		if wait := l.admit(now, ada); wait != 0 {
			t.Fatalf("attempt %d: wait %v", i, wait)
		}
		l.finish(now, failed, ada)
		now = now.Add(time.Second)
	}
	for _, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, longPause,
		longPause} {
		until := now.Add(want - time.Second)
		if wait := l.admit(now, loginSubjects(Login{Username: "ADA"})[0]); wait != want-time.Second {
			t.Fatalf("got %v, want %v", wait, want-time.Second)
		}
		if l.admit(until.Add(-1), ada) == 0 {
			t.Fatal("admitted in the pause")
		}
		if wait := l.admit(until, ada); wait != 0 {
			t.Fatalf("after the pause: wait %v", wait)
		}
		l.finish(until, failed, ada)
		now = until.Add(time.Second)
	}
}

func TestSlowFailuresAndSuccessesCostNothing(t *testing.T) {
	l, now := newLimiter(10), begin
	for i := range 100 {
		if wait := l.admit(now, ada); wait != 0 {
			t.Fatalf("four a minute, attempt %d: wait %v", i, wait)
		}
		l.finish(now, failed, ada)
		if i%4 == 3 {
			now = now.Add(time.Minute)
		}
	}
	for i := range 100 {
		if wait := l.admit(now, ada); wait != 0 {
			t.Fatalf("a success after each failure, attempt %d: wait %v", i, wait)
		}
		l.finish(now, []outcome{succeeded, failed, undecided}[i%3], ada)
	}
}

func TestPausesAreForgiven(t *testing.T) {
	l, now := newLimiter(10), begin
	for range 5 {
		l.fail(now, ada)
	}
	now = now.Add(time.Minute + forgiveness)
	for i := range 4 {
		l.fail(now, ada)
		if wait := l.wait(now, ada); wait != 0 {
			t.Errorf("failure %d: wait %v", i, wait)
		}
	}
}

func TestParallelAttemptsDoNotEvadeTheLimit(t *testing.T) {
	l := newLimiter(10)
	admitted := 0
	for range 100 {
		if l.admit(begin, ada) == 0 {
			admitted++
		}
	}
	if admitted != failuresToPause[byAccountAddress] {
		t.Errorf("got %d at once, want %d", admitted, failuresToPause[byAccountAddress])
	}
	for range admitted {
		l.finish(begin, failed, ada)
	}
	if wait := l.admit(begin, ada); wait != time.Minute {
		t.Errorf("got %v, want a minute", wait)
	}
}

func TestSuccessDoesNotClearAnAddress(t *testing.T) {
	l, address := newLimiter(10), addressSubject(byLoginAddress, netip.MustParseAddr("192.0.2.1"))
	for range failuresToPause[byLoginAddress] {
		l.fail(begin, address)
	}
	l.finish(begin, succeeded, address)
	if l.wait(begin, address) == 0 {
		t.Error("the pause is over")
	}
}

func TestAddressesOfOneNetworkCountTogether(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"2001:db8:1:2::1", "2001:db8:1:2:ffff::2", true},
		{"2001:db8:1:2::1", "2001:db8:1:3::1", false},
		{"fe80::1%eth0", "fe80::1%eth1", true},
	} {
		a, b := addressSubject(byLoginAddress, netip.MustParseAddr(c.a)), addressSubject(byLoginAddress,
			netip.MustParseAddr(c.b))
		if (a == b) != c.same {
			t.Errorf("%s and %s: got %v, %v", c.a, c.b, a, b)
		}
	}
	if addressSubject(byLoginAddress, netip.Addr{}) == addressSubject(bySecretAddress, netip.Addr{}) {
		t.Error("logins and secrets are one")
	}
}

func TestTheLongestUnusedIsForgotten(t *testing.T) {
	l := newLimiter(3)
	name := func(i int) subject { return subject{byDevice, fmt.Sprint("user", i)} }
	for i := range 3 {
		for range 5 {
			l.fail(begin, name(i))
		}
	}
	l.fail(begin, name(0)) // used again
	l.fail(begin, name(3))
	for i, want := range []bool{true, false, true, false} {
		if got := l.wait(begin, name(i)) > 0; got != want {
			t.Errorf("user %d: pauses %v, want %v", i, got, want)
		}
	}
	kept := &l.tables[byDevice]
	if len(kept.entries) != 3 || kept.recent.Len() != 3 {
		t.Errorf("kept %d and %d", len(kept.entries), kept.recent.Len())
	}
	for i := range 10 {
		l.fail(begin, subject{bySecretAddress, fmt.Sprint(i)})
	}
	if l.wait(begin, name(0)) == 0 {
		t.Error("failures of another kind pushed out a user")
	}
	for i := range 10 { // attempts that were not decided leave nothing behind
		l.admit(begin, subject{byAccount, fmt.Sprint(i)})
		l.finish(begin, undecided, subject{byAccount, fmt.Sprint(i)})
	}
	if n := len(l.tables[byAccount].entries); n != 0 {
		t.Errorf("%d undecided attempts are kept", n)
	}
}

// TestOneFailureDoesNotExtendThePauseOfAnAccount: else a stranger with one guess a pause
// could keep all unknown browsers of a user out.
func TestOneFailureDoesNotExtendThePauseOfAnAccount(t *testing.T) {
	l, account := newLimiter(10), subject{byAccount, "ada"}
	for range failuresToPause[byAccount] {
		l.fail(begin, account)
	}
	now := begin.Add(firstPause)
	if l.wait(now.Add(-1), account) == 0 || l.wait(now, account) != 0 {
		t.Error("the pause is not a minute")
	}
	l.fail(now, account)
	if wait := l.wait(now, account); wait != 0 {
		t.Errorf("one failure later: wait %v", wait)
	}
}

func FuzzParseToken(f *testing.F) {
	raw := make([]byte, entropy)
	f.Add(kindAccess.format(raw))
	f.Add(kindCode.formatWith(family{}, raw))
	f.Fuzz(func(t *testing.T, token string) {
		for _, k := range []kind{kindAccess, kindCode, kindRefresh, kindSession} {
			for _, size := range []int{entropy, familial + entropy} {
				if raw := k.parse(token, size); raw != nil && k.format(raw) != token {
					t.Fatalf("%q is read as another token", token)
				}
			}
		}
	})
}

func TestEveryMistypedLetterIsNoticed(t *testing.T) {
	token := kindAccess.format(make([]byte, entropy))
	for i := range token {
		for _, c := range []byte("Ab9-_\n=") {
			bad := token[:i] + string(c) + token[i+1:]
			if bad != token && kindAccess.parse(bad, entropy) != nil {
				t.Errorf("%q passes", bad)
			}
		}
	}
}

// What is known of an account or address is forgotten after maxSubjects others. An address cannot
// name that many before the pauses of the first ones end, because failures of an address are counted.
func TestOneAddressCannotPushOutWhatIsKnownOfOthers(t *testing.T) {
	l, now := newLimiter(maxSubjects), begin
	most := 0
	for i := range 100_000 { // a day, with more than one attempt a second
		if s := loginSubjects(Login{Username: fmt.Sprint(i), From: netip.MustParseAddr("192.0.2.1")}); l.admit(
			now,
			s...) == 0 {
			l.finish(now, failed, s...)
		}
		now = now.Add(864 * time.Millisecond)
		most = max(most, len(l.tables[byAccount].entries), len(l.tables[byAccountAddress].entries))
	}
	if most > maxSubjects/100 {
		t.Errorf("one address had %d subjects counted in a day, want at most a hundredth of %d", most, maxSubjects)
	}
}
