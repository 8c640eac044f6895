package tokens

import (
	"container/list"
	"net/netip"
	"strings"
	"time"
)

// limiter counts failed attempts by subject. A few failures per minute are free; each further one makes the pause
// longer. It is pure and has no clock and no lock, because the actor owns it.
//
// It protects passwords of people, which can be guessed. Secrets of clients cannot be guessed. For them it only
// bounds the work for wrong ones, and a right secret passes whatever happened under the same client id.
//
// Each kind of subject has a table of its own, so that cheap failures of one kind cannot
// push out what is known of another.
type limiter struct {
	tables [subjectKinds]table
	most   int // subjects of one kind
}

// table holds the subjects of one kind. When it is full, the one unused for longest is forgotten.
type table struct {
	entries map[string]*list.Element
	recent  *list.List // of *attempts, the last used in front
}

// subject is a device, an account, an address or an app to which failures are counted.
type subject struct {
	kind subjectKind
	name string
}

// subjectKind says what attempts are counted by. Each kind has a table of its own, so that a flood of one kind does not
// push subjects of the others out.
type subjectKind uint8

const (
	byDevice         subjectKind = iota // an account in a browser that has signed in to it before
	byAccountAddress                    // an account, from one address
	byAccount                           // an account, from all browsers that are not known
	byApp
	byLoginAddress
	bySecretAddress
	byCode        // the second factor of an account, whose password is known, from one device, address or session
	byCodeAccount // the second factor of an account, from all browsers that are not known
	byLead        // taken usernames that are tried with the invitations of one lead
	subjectKinds
)

// failuresToPause is the number of failures in a window of which the last one begins a pause. Many people may share an
// address, and strangers at one address must not use up the failures of an account.
var failuresToPause = [subjectKinds]int{
	byDevice:         5,
	byAccountAddress: 5,
	byAccount:        20,
	byApp:            5,
	byLoginAddress:   20,
	bySecretAddress:  20,
	byCode:           5,
	byCodeAccount:    20,
	byLead:           20,
}

// A subject that has failed as often as its kind allows in a window is paused for firstPause, and each time after that
// for twice as long as before, up to longPause.
const (
	window      = time.Minute
	firstPause  = time.Minute
	longPause   = 15 * time.Minute
	forgiveness = 15 * time.Minute // the time after a pause without a failure that ends the series
	inFlight    = time.Second      // the wait while earlier attempts are still being checked

	maxSubjects = 20_000 // of one kind
)

// attempts are the counts of one subject.
type attempts struct {
	subject  subject
	since    time.Time // beginning of the window
	failures int       // in the window
	pending  int       // admitted attempts that are not decided and may fail yet
	pauses   int       // in a row
	until    time.Time // end of the last pause
}

// newLimiter returns a limiter that remembers so many subjects of each kind.
func newLimiter(most int) *limiter {
	l := &limiter{most: most}
	for i := range l.tables {
		l.tables[i] = table{map[string]*list.Element{}, list.New()}
	}
	return l
}

// loginSubjects returns the subjects to which a failure of l is counted. A browser that has signed in to the
// account before is counted alone (OWASP's device cookies), so that strangers who guess cannot lock the user out.
func loginSubjects(l Login) []subject {
	name := strings.ToLower(l.Username)
	if l.Device != "" {
		return []subject{{byDevice, l.Device + " " + name}}
	}
	from := addressSubject(byLoginAddress, l.From)
	return []subject{{byAccountAddress, from.name + " " + name}, {byAccount, name}, from}
}

// addressSubject returns the subject of an address. An IPv6 client has at least 64 bits to choose from, so that
// its addresses count as one.
func addressSubject(kind subjectKind, ip netip.Addr) subject {
	ip = ip.Unmap().WithZone("")
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return subject{kind, p.String()}
		}
	}
	return subject{kind, ip.String()}
}

// wait returns how long the subjects must still pause, or 0.
func (l *limiter) wait(now time.Time, subjects ...subject) time.Duration {
	var wait time.Duration
	for _, s := range subjects {
		if e := l.tables[s.kind].entries[s.name]; e != nil {
			wait = max(wait, e.Value.(*attempts).until.Sub(now))
		}
	}
	return wait
}

// admit admits an attempt, or returns how long to wait. The caller reports its outcome to finish. Attempts that are
// not finished count as failures, so that parallel attempts cannot evade the limit.
func (l *limiter) admit(now time.Time, subjects ...subject) time.Duration {
	if wait := l.wait(now, subjects...); wait > 0 {
		return wait
	}
	for _, s := range subjects {
		if a := l.get(s); a.pending > 0 && a.pending+a.count(now) >= a.pauseAt() {
			return inFlight
		}
	}
	for _, s := range subjects {
		l.get(s).pending++
	}
	return 0
}

// outcome is the result of an attempt.
type outcome uint8

const (
	undecided outcome = iota
	succeeded
	failed
)

// finish records the outcome of an attempt that was admitted. A success forgives the failures of the subjects that only
// the user can be behind, and not those of an address or of an account as a whole.
func (l *limiter) finish(now time.Time, o outcome, subjects ...subject) {
	for _, s := range subjects {
		a := l.get(s)
		a.pending = max(a.pending-1, 0)
		switch {
		case o == failed:
			a.fail(now)
		case o == succeeded && (s.kind == byDevice || s.kind == byAccountAddress || s.kind == byCode):
			a.failures, a.pauses = 0, 0
		}
		if a.pending == 0 && a.failures == 0 && a.pauses == 0 {
			l.tables[s.kind].forget(s.name)
		}
	}
}

// fail counts a failure of an attempt that needed no admission.
func (l *limiter) fail(now time.Time, subjects ...subject) {
	for _, s := range subjects {
		l.get(s).fail(now)
	}
}

// get returns the attempts of a subject. If there are too many subjects, the one that was not seen
// for the longest time is forgotten.
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

// forget removes what is known of a name.
func (t *table) forget(name string) {
	t.recent.Remove(t.entries[name])
	delete(t.entries, name)
}

// count returns the failures in the current window.
func (a *attempts) count(now time.Time) int {
	if a.pauses > 0 && now.Sub(a.until) >= forgiveness {
		a.pauses, a.failures = 0, 0
	}
	if now.Sub(a.since) >= window {
		a.since, a.failures = now, 0
	}
	return a.failures
}

// pauseAt returns the number of failures in a window of which the last one begins a pause. After a pause it is 1,
// except for an account as a whole, because one failure of a stranger must not extend its pause.
func (a *attempts) pauseAt() int {
	if a.pauses > 0 && a.subject.kind != byAccount {
		return 1
	}
	return failuresToPause[a.subject.kind]
}

// fail counts a failed attempt. When too many have failed, the subject pauses, each time for twice
// as long as before.
func (a *attempts) fail(now time.Time) {
	a.failures = a.count(now) + 1
	if a.failures < a.pauseAt() {
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
