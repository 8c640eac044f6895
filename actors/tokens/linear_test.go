package tokens_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/tokens"
	"stagedoor/state/journal"
	"stagedoor/state/journal/postgres"
	"stagedoor/state/statetest/pgserver"
)

// step is one call about a grant, answer what came of it.
type step struct {
	grant int
	kind  stepKind
	token string
}

type stepKind uint8

const (
	stepExchange stepKind = iota
	stepRefresh
	stepRevoke
	stepRevokeAccess
	stepIntrospect
	stepLookup
)

type answer struct {
	ok   bool
	pair tokens.Tokens
}

// lineage is a grant as one caller after the other would find it.
type lineage struct {
	used, dead     bool
	current        string // refresh token
	previous       string // the one before, as long as it is forgiven
	access         string // issued with current
	revokedAccess  string // every one, with spaces around
	forgivesReplay bool
}

func (l lineage) revoked(access string) bool {
	return strings.Contains(l.revokedAccess, " "+access+" ")
}

// take is the lineage after new tokens were issued.
func (l lineage) take(a answer) lineage {
	l.used, l.previous = true, ""
	if l.forgivesReplay {
		l.previous = l.current
	}
	l.current, l.access = a.pair.Refresh, a.pair.Access
	return l
}

// next tells whether an answer is right, and what the grant is afterwards.
func (l lineage) next(s step, a answer) (bool, lineage) {
	switch s.kind {
	case stepExchange:
		if l.dead || l.used {
			l.dead = true
			return !a.ok, l
		}
		return a.ok, l.take(a)
	case stepRefresh:
		return l.refresh(s.token, a)
	case stepRevoke:
		l.dead = true
		return a.ok, l
	case stepRevokeAccess:
		l.revokedAccess += " " + s.token + " "
		return a.ok, l
	case stepIntrospect:
		return a.ok == (!l.dead && s.token == l.current), l
	}
	return a.ok == (!l.dead && !l.revoked(s.token)), l
}

func (l lineage) refresh(token string, a answer) (bool, lineage) {
	switch {
	case l.dead:
		return !a.ok, l
	case token == l.current:
		return a.ok, l.take(a)
	case token == l.previous && l.revoked(l.access):
		return !a.ok, l
	case token == l.previous:
		return a.ok && a.pair.Refresh == l.current && a.pair.Access == l.access, l
	}
	l.dead = true
	return !a.ok, l
}

func lineages(forgives bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return lineage{forgivesReplay: forgives} },
		Step: func(state, in, out any) (bool, any) { return state.(lineage).next(in.(step), out.(answer)) },
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			by := map[int][]porcupine.Operation{}
			for _, op := range history {
				grant := op.Input.(step).grant
				by[grant] = append(by[grant], op)
			}
			parts := make([][]porcupine.Operation, 0, len(by))
			for _, part := range by {
				parts = append(parts, part)
			}
			return parts
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v: %v", in, out.(answer).ok) },
	}
}

// drive has the replies that the callers of a history share.
type drive struct {
	nodes []*bench // which the callers use in turn
	codes []string
	begun time.Time

	mu        sync.Mutex
	refreshes [][]string // by grant
	accesses  [][]string
	history   []porcupine.Operation
}

// choose picks a call, mostly with the newest tokens, so that callers interfere.
func (d *drive) choose(random *rand.Rand) step {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := step{grant: random.IntN(len(d.codes))}
	known := len(d.refreshes[s.grant])
	n := random.IntN(100)
	if known == 0 || n < 2 {
		s.token = d.codes[s.grant]
		return s
	}
	if len(d.nodes) > 1 {
		n %= 51 // reads of a node may be those of a moment ago
	}
	newest := func(list []string) string { return list[len(list)-1-min(random.IntN(16)/15, len(list)-1)] }
	switch {
	case n < 50:
		s.kind, s.token = stepRefresh, newest(d.refreshes[s.grant])
	case n < 51:
		s.kind, s.token = stepRevoke, newest(d.refreshes[s.grant])
	case n < 55:
		s.kind, s.token = stepRevokeAccess, newest(d.accesses[s.grant])
	case n < 78:
		s.kind, s.token = stepIntrospect, newest(d.refreshes[s.grant])
	default:
		s.kind, s.token = stepLookup, newest(d.accesses[s.grant])
	}
	return s
}

// carry makes the call. Refusals other than the one that the protocol has for
// tokens are no answers.
func (b *bench) carry(s step) (a answer, err error) {
	switch s.kind {
	case stepExchange:
		a.pair, err = b.exchange(s.token)
	case stepRefresh:
		a.pair, err = b.refresh(s.token)
	case stepRevoke, stepRevokeAccess:
		err = b.Revoke(ctx, b.creds, s.token)
	case stepIntrospect:
		i, err := b.Introspect(ctx, b.creds, s.token)
		return answer{ok: i.Active}, err
	case stepLookup:
		_, err = b.Lookup(s.token)
	}
	a.ok = err == nil
	if errors.Is(err, tokens.ErrInvalidGrant) || errors.Is(err, tokens.ErrInvalidToken) {
		err = nil
	}
	return a, err
}

func (d *drive) note(client int, s step, a answer, called, returned time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.history = append(d.history,
		porcupine.Operation{ClientId: client, Input: s, Call: int64(called), Output: a, Return: int64(returned)})
	if a.ok && a.pair.Refresh != "" {
		d.refreshes[s.grant] = append(d.refreshes[s.grant], a.pair.Refresh)
		d.accesses[s.grant] = append(d.accesses[s.grant], a.pair.Access)
	}
}

// newDrive returns a drive with a code for each of its grants, which no caller has exchanged yet.
func newDrive(t *testing.T, nodes ...*bench) *drive {
	t.Helper()
	const grants = 16
	d := &drive{nodes: nodes, refreshes: make([][]string, grants), accesses: make([][]string, grants)}
	for range grants {
		d.codes = append(d.codes, nodes[0].code(t))
	}
	return d
}

// record returns the history of callers who make calls at the same time.
func (d *drive) record(t *testing.T, seed uint64) []porcupine.Operation {
	t.Helper()
	const callers, calls = 8, 200
	d.begun = time.Now()
	var wg sync.WaitGroup
	for client := range callers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(client)))
			for range calls / callers {
				s := d.choose(random)
				called := time.Since(d.begun)
				a, err := d.nodes[client%len(d.nodes)].carry(s)
				if errors.Is(err, journal.ErrUnreachable) {
					continue // nothing has changed
				}
				if err != nil {
					t.Errorf("%+v: %v", s, err)
				}
				d.note(client, s, a, called, time.Since(d.begun))
			}
		})
	}
	wg.Wait()
	return d.history
}

// histories are few by default: the race detector makes each of them slow.
var histories = flag.Int("histories", 200, "how many random histories are checked")

// patience bounds the search for an order; it takes milliseconds.
const patience = time.Minute

// I2: whatever calls race, their answers are those of some order of them one
// after the other.
func TestHistoriesAreLinearizable(t *testing.T) {
	histories := *histories
	if testing.Short() {
		histories = min(histories, 24)
	}
	for name, grace := range map[string]time.Duration{"strict": 0, "forgiving": time.Minute} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tokens.Config{RefreshGrace: grace})
			refused, issued := 0, 0
			for seed := range uint64(histories / 2) {
				b.clock.Add(time.Hour) // the grants of the history before are not in the way
				history := newDrive(t, b).record(t, seed)
				if got := porcupine.CheckOperationsTimeout(lineages(grace > 0), history,
					patience); got != porcupine.Ok {
					t.Fatalf("history %d: %s", seed, got)
				}
				for _, op := range history {
					if a := op.Output.(answer); !a.ok {
						refused++
					} else if a.pair.Refresh != "" {
						issued++
					}
				}
			}
			if issued < 5*histories || refused < 5*histories {
				t.Errorf("%d pairs issued, %d calls refused: nothing raced", issued, refused)
			}
		})
	}
}

// What is once is once over two processes on one database, whose connections end in the middle of what they do.
func TestHistoriesOfTwoNodesAreLinearizable(t *testing.T) {
	sys, server := kittest.Start(t), pgserver.New(t, "fsync=off")
	var proxies []*pgserver.Proxy
	var stores []journal.Shared
	open := func(node string) journal.Store {
		proxy := pgserver.NewProxy(t, server)
		store, err := postgres.Open(ctx, proxy.URL(), postgres.Options{Node: node, Several: true,
			AnswerWait: patience})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		proxies, stores = append(proxies, proxy), append(stores, store)
		return store
	}
	first := newBenchIn(t, sys, open("a"), tokens.Config{})
	second := first.beside(t, open("b"), tokens.Config{})
	refused, issued := 0, 0
	for seed := range uint64(*histories / 100) {
		first.clock.Add(time.Hour)
		drive := newDrive(t, first, second) // before the cuts, of which one can refuse a code
		cutting, stop := context.WithCancel(ctx)
		var cutter sync.WaitGroup
		cutter.Go(func() {
			for i := 0; cutting.Err() == nil; i++ {
				proxies[i%len(proxies)].Set(pgserver.Cut)
				proxies[i%len(proxies)].Set(pgserver.None)
				// The next cut waits until the node is connected again, for which a busy machine may need long.
				for connected := false; !connected && cutting.Err() == nil; time.Sleep(100 * time.Millisecond) {
					_, err := stores[i%len(stores)].Head(cutting)
					connected = err == nil
				}
			}
		})
		history := drive.record(t, seed)
		stop()
		cutter.Wait()
		if got := porcupine.CheckOperationsTimeout(lineages(false), history, patience); got != porcupine.Ok {
			t.Fatalf("history %d: %s", seed, got)
		}
		for _, op := range history {
			if a := op.Output.(answer); !a.ok {
				refused++
			} else if a.pair.Refresh != "" {
				issued++
			}
		}
	}
	if issued < 10 || refused < 10 {
		t.Errorf("%d pairs issued, %d calls refused: nothing raced", issued, refused)
	}
}

// The checker distinguishes histories that must not happen from those that may.
func TestForgedHistoriesAreNoticed(t *testing.T) {
	pair := func(n string) answer { return answer{true, tokens.Tokens{Access: "at" + n, Refresh: "rt" + n}} }
	call := func(from, to int64, kind stepKind, token string, a answer) porcupine.Operation {
		return porcupine.Operation{Call: from, Return: to, Input: step{kind: kind, token: token}, Output: a}
	}
	redeemed := call(0, 1, stepExchange, "ac", pair("1"))
	for name, c := range map[string]struct {
		history []porcupine.Operation
		want    bool
	}{
		"one exchange": {[]porcupine.Operation{redeemed}, true},
		"one code, two winners": {[]porcupine.Operation{redeemed, call(0, 1, stepExchange, "ac", pair("2"))},
			false},
		"one refresh token, two": {[]porcupine.Operation{redeemed, call(2, 3, stepRefresh, "rt1", pair("2")),
			call(2, 3, stepRefresh, "rt1", pair("3"))}, false},
		"use before the reuse": {[]porcupine.Operation{redeemed, call(2, 9, stepRefresh, "rt1", pair("2")),
			call(3, 9, stepRefresh, "rt1", answer{}), call(2, 9, stepLookup, "at1", answer{ok: true})}, true},
		"use after the reuse": {[]porcupine.Operation{redeemed, call(2, 3, stepRefresh, "rt1", pair("2")),
			call(4, 5, stepRefresh, "rt1", answer{}), call(6, 7, stepLookup, "at1", answer{ok: true})}, false},
		"use during the revocation": {[]porcupine.Operation{redeemed, call(2, 5, stepRevoke, "rt1", answer{ok: true}),
			call(3, 4, stepLookup, "at1", answer{ok: true})}, true},
		"use after the revocation": {[]porcupine.Operation{redeemed, call(2, 3, stepRevoke, "rt1", answer{ok: true}),
			call(4, 5, stepLookup, "at1", answer{ok: true})}, false},
		"a revoked access token": {[]porcupine.Operation{redeemed,
			call(2, 3, stepRevokeAccess, "at1", answer{ok: true}), call(4, 5, stepLookup, "at1", answer{ok: true})},
			false},
		"an old refresh token active": {[]porcupine.Operation{redeemed, call(2, 3, stepRefresh, "rt1", pair("2")),
			call(4, 5, stepIntrospect, "rt1", answer{ok: true})}, false},
	} {
		if got := porcupine.CheckOperations(lineages(false), c.history); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
