package tokens

import (
	"container/list"
	"net/netip"
	"strings"
	"time"
)

// limiter counts failures by whom they concern: a few a minute are free, then
// each makes the pause longer. It is pure: no clock, no lock; the actor owns it.
//
// It holds back people's passwords, which can be guessed. Clients' secrets can't:
// for them it only keeps those who are wrong from being answered at leisure, and
// who is right passes whatever others do under his name.
//
// Each kind of subject has a table of its own, so that cheap failures of one kind cannot
// push out what is known of another.
type limiter struct {
	tables [subjectKinds]table
	most   int // subjects of one kind
}

// table holds the subjects of one kind, of which the longest unused is forgotten first.
type table struct {
	entries map[string]*list.Element
	recent  *list.List // of *attempts, the last used first
}

// subject is whom a failure concerns.
type subject struct {
	kind subjectKind
	name string
}

type subjectKind uint8

const (
	byDevice         subjectKind = iota // an account in a browser that has signed in to it before
	byAccountAddress                    // an account, from one address
	byAccount                           // an account, from all browsers that are not known
	byApp
	byLoginAddress
	bySecretAddress
	subjectKinds
)

// free is how many failures in a window cost nothing. Many people may share an address,
// and strangers at one address must not use up what an account has.
var free = [subjectKinds]int{byDevice: 5, byAccountAddress: 5, byAccount: 20, byApp: 5, byLoginAddress: 20, bySecretAddress: 20}

const (
	window      = time.Minute
	firstPause  = time.Minute
	longPause   = 15 * time.Minute
	forgiveness = 15 * time.Minute // after a pause without another failure
	inFlight    = time.Second      // when those may have been decided that are being checked

	maxSubjects = 20_000 // of one kind
)

// attempts is what is known of one subject.
type attempts struct {
	subject  subject
	since    time.Time // of the window
	failures int       // in it
	pending  int       // let in and not decided: they may fail yet
	pauses   int       // in a row
	until    time.Time // of the last one
}

func newLimiter(most int) *limiter {
	l := &limiter{most: most}
	for i := range l.tables {
		l.tables[i] = table{map[string]*list.Element{}, list.New()}
	}
	return l
}

// loginSubjects returns whom a login concerns. A browser that has signed in to the account
// before is counted alone (OWASP's device cookies), so strangers who guess cannot lock its
// user out, wherever they are.
func loginSubjects(l Login) []subject {
	name := strings.ToLower(l.Username)
	if l.Device != "" {
		return []subject{{byDevice, l.Device + " " + name}}
	}
	from := addressSubject(byLoginAddress, l.From)
	return []subject{{byAccountAddress, from.name + " " + name}, {byAccount, name}, from}
}

// addressSubject is who an address is likely to be: one with IPv6 has at least
// 64 bits to choose from.
func addressSubject(kind subjectKind, ip netip.Addr) subject {
	ip = ip.Unmap().WithZone("")
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return subject{kind, p.String()}
		}
	}
	return subject{kind, ip.String()}
}

// wait is how long the subjects have to pause; 0: not at all.
func (l *limiter) wait(now time.Time, subjects ...subject) time.Duration {
	var wait time.Duration
	for _, s := range subjects {
		if e := l.tables[s.kind].entries[s.name]; e != nil {
			wait = max(wait, e.Value.(*attempts).until.Sub(now))
		}
	}
	return wait
}

// admit lets an attempt in, to be settled, or returns how long to wait. Those
// under way count as failures until they are settled, so that many at once are
// no way around.
func (l *limiter) admit(now time.Time, subjects ...subject) time.Duration {
	if wait := l.wait(now, subjects...); wait > 0 {
		return wait
	}
	for _, s := range subjects {
		if a := l.get(s); a.pending > 0 && a.pending+a.count(now) >= a.allowed() {
			return inFlight
		}
	}
	for _, s := range subjects {
		l.get(s).pending++
	}
	return 0
}

// outcome is how an attempt ended.
type outcome uint8

const (
	undecided outcome = iota
	succeeded
	failed
)

// settle ends an attempt that was let in.
func (l *limiter) settle(now time.Time, o outcome, subjects ...subject) {
	for _, s := range subjects {
		a := l.get(s)
		a.pending = max(a.pending-1, 0)
		switch {
		case o == failed:
			a.fail(now)
		case o == succeeded && (s.kind == byDevice || s.kind == byAccountAddress):
			a.failures, a.pauses = 0, 0
		}
		if a.pending == 0 && a.failures == 0 && a.pauses == 0 {
			l.tables[s.kind].forget(s.name)
		}
	}
}

// fail counts a failure of somebody who was not let in first.
func (l *limiter) fail(now time.Time, subjects ...subject) {
	for _, s := range subjects {
		l.get(s).fail(now)
	}
}

func (l *limiter) get(s subject) *attempts {
	t := &l.tables[s.kind]
	if e := t.entries[s.name]; e != nil {
		t.recent.MoveToFront(e)
		return e.Value.(*attempts)
	}
	if len(t.entries) >= l.most {
		t.forget(t.recent.Back().Value.(*attempts).subject.name)
	}
	a := &attempts{subject: s}
	t.entries[s.name] = t.recent.PushFront(a)
	return a
}

func (t *table) forget(name string) {
	t.recent.Remove(t.entries[name])
	delete(t.entries, name)
}

// count is the failures in the window that now is in.
func (a *attempts) count(now time.Time) int {
	if a.pauses > 0 && now.Sub(a.until) >= forgiveness {
		a.pauses, a.failures = 0, 0
	}
	if now.Sub(a.since) >= window {
		a.since, a.failures = now, 0
	}
	return a.failures
}

// allowed is how many failures in a window cost nothing. After a pause there are none,
// except for an account as a whole: one stranger's failure must not extend its pause.
func (a *attempts) allowed() int {
	if a.pauses > 0 && a.subject.kind != byAccount {
		return 1
	}
	return free[a.subject.kind]
}

func (a *attempts) fail(now time.Time) {
	a.failures = a.count(now) + 1
	if a.failures < a.allowed() {
		return
	}
	pause := longPause
	if a.pauses < 4 {
		pause = min(firstPause<<a.pauses, longPause)
	}
	a.until = now.Add(pause)
	a.pauses++
	a.failures = 0
}
