package nemesis

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

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/money"
)

var rounds = flag.Int("nemesis.rounds", 1, "how often all faults follow each other")

var ctx = context.Background()

// patience bounds the search for an order of calls. It takes milliseconds.
const patience = time.Minute

// call is one operation, result its answer.
type call struct {
	object string // the account, code or key that it is about
	kind   string
	amount int64 // of a hold
	hold   uint64
}

type result struct {
	ok   bool
	hold uint64 // that was begun
	have int64  // credits of an account, less what was spent
}

// object is an account, code or key as one caller after the other would find it.
type object struct {
	used, gone bool   // a code, a key
	available  int64  // of an account: credits that are neither spent nor held
	holds      string // " ID=AMOUNT " for each open one
}

const credits = 1000

// next reports whether an answer is right, and returns the object afterwards.
func (o object) next(c call, r result) (bool, object) {
	switch c.kind {
	case "redeem", "create":
		ok := r.ok == !o.used
		o.used = true
		return ok, o
	case "revoke":
		o.gone = o.used
		return r.ok == o.used, o
	case "check":
		return r.ok == (o.used && !o.gone), o
	case "begin":
		if c.amount > o.available {
			return !r.ok, o
		}
		o.available -= c.amount
		o.holds += fmt.Sprintf(" %d=%d ", r.hold, c.amount)
		return r.ok, o
	case "settle", "release":
		entry := fmt.Sprintf(" %d=%d ", c.hold, c.amount)
		if !strings.Contains(o.holds, entry) {
			return !r.ok, o
		}
		o.holds = strings.Replace(o.holds, entry, "", 1)
		if c.kind == "release" {
			o.available += c.amount
		}
		return r.ok, o
	}
	return r.have == o.available, o // a look at the account when all holds have ended
}

var model = porcupine.Model{
	Init: func() any { return object{available: credits} },
	Step: func(state, in, out any) (bool, any) { return state.(object).next(in.(call), out.(result)) },
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		by := map[string][]porcupine.Operation{}
		for _, op := range history {
			name := op.Input.(call).object
			by[name] = append(by[name], op)
		}
		for _, part := range by {
			parts = append(parts, part)
		}
		return parts
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v: %+v", in, out) },
}

// carry makes a call on a node.
func carry(s *state.State, c call, code string) (r result, err error) {
	post := func(p money.Posting) (uint64, error) {
		p.Receipt = &money.Receipt{Request: "req_nemesis", Model: "m"}
		_, posted, err := money.CommitPostings(ctx, s, c.object, []money.Posting{p})
		if err != nil {
			return 0, err
		}
		return posted[0].Sequence, posted[0].Err
	}
	switch c.kind {
	case "begin":
		r.hold, err = post(money.Posting{Kind: money.Begin, Amount: c.amount})
	case "settle":
		_, err = post(money.Posting{Kind: money.Settle, Hold: c.hold, Amount: c.amount, Reason: "stop"})
	case "release":
		_, err = post(money.Posting{Kind: money.Release, Hold: c.hold, Reason: "stop"})
	case "look":
		err = state.Run(ctx, s, func(tx *state.Tx) error {
			a := money.FindAccount(tx.View(), c.object)
			r.have = a.Credits - a.Spent
			return nil
		})
	case "redeem":
		_, _, err = money.Redeem(ctx, s, "redeemer", code)
	case "create":
		err = identity.CreateKey(ctx, s, identity.Key{ID: c.object, Name: "n", Prefix: "12345678",
			Hash: state.HashSecret("sd-" + c.object), Enabled: true})
	case "revoke":
		_, err = identity.RevokeKey(ctx, s, c.object)
	case "check":
		err = state.Run(ctx, s, func(tx *state.Tx) error {
			k, err := identity.FindKey(tx.View(), c.object)
			if err == nil && !k.Revoked.IsZero() {
				err = state.ErrFinished
			}
			return err
		})
	}
	r.ok = err == nil
	for _, refusal := range []error{money.ErrInsufficient, money.ErrRedeemed, state.ErrFinished, state.ErrExists,
		state.ErrNotFound} {
		if errors.Is(err, refusal) {
			err = nil
		}
	}
	return r, err
}

// histories has the calls that are made while one fault follows another.
type histories struct {
	t     *testing.T
	begun time.Time

	mu      sync.Mutex
	history []porcupine.Operation
	codes   map[string]string // by id
	keys    []string
	account string
	holds   []call // that were begun; few of them have ended
	away    int    // calls that were refused because the database was away
	refused int
}

// do makes a call and notes it. A call that was refused without a decision has changed nothing, and is not noted.
func (h *histories) do(client int, s *state.State, c call) {
	h.mu.Lock()
	code := h.codes[c.object]
	h.mu.Unlock()
	called := time.Since(h.begun)
	r, err := carry(s, c, code)
	returned := time.Since(h.begun)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case errors.Is(err, journal.ErrUnreachable), errors.Is(err, journal.ErrReadOnly), errors.Is(err, state.ErrBusy),
		errors.Is(err, journal.ErrForked):
		h.away++
		return
	case err != nil:
		h.t.Errorf("%+v: %v", c, err)
		return
	}
	if !r.ok {
		h.refused++
	}
	h.history = append(h.history, porcupine.Operation{ClientId: client, Input: c, Call: int64(called), Output: r,
		Return: int64(returned)})
	if c.kind == "begin" && r.ok {
		h.holds = append(h.holds, call{object: c.object, amount: c.amount, hold: r.hold})
	}
}

// await returns after n more calls were decided. It calls meanwhile again and again.
func (h *histories) await(n int, meanwhile func()) {
	decided := func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.history)
	}
	n += decided()
	for late := time.Now().Add(patience); decided() < n; time.Sleep(time.Millisecond) {
		meanwhile()
		if time.Now().After(late) {
			h.t.Fatal("no calls are decided any more")
		}
	}
}

// choose returns a call at random. Most holds are ended by two callers at once.
func (h *histories) choose() call {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch n := rand.IntN(10); {
	case n < 3 || n < 6 && len(h.holds) == 0:
		return call{object: h.account, kind: "begin", amount: 1 + rand.Int64N(credits/10)}
	case n < 6:
		c := h.holds[max(0, len(h.holds)-1-rand.IntN(4))]
		c.kind = []string{"settle", "release"}[rand.IntN(2)]
		return c
	case n < 7:
		for id := range h.codes {
			return call{object: id, kind: "redeem"}
		}
	}
	kind := []string{"create", "create", "check", "check", "revoke"}[rand.IntN(5)]
	return call{object: h.keys[rand.IntN(len(h.keys))], kind: kind}
}
