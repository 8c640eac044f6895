package nemesis

import (
	"context"
	crand "crypto/rand"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/work"
)

var rounds = flag.Int("nemesis.rounds", 1, "how often all faults follow each other")

var ctx = context.Background()

// patience bounds the search for an order of calls. It takes milliseconds.
const patience = time.Minute

// call is one operation, result its answer.
type call struct {
	object string // the account, code, key or idempotency key of a job that it is about
	kind   string
	amount int64 // of a hold
	hold   uint64
	node   state.Node // that makes it
	base   job        // as the node has read it before it changes the job to the phase to
	to     work.VideoPhase
}

type result struct {
	ok   bool
	hold uint64 // that was begun
	have int64  // credits of an account, less what was spent
	id   string // of the job that has the idempotency key
}

// job is a video job, whose zero value does not exist.
type job struct {
	id       string
	phase    work.VideoPhase
	attempts int
	node     state.Node // that works on it
}

// object is an account, code, key or job as one caller after the other would find it.
type object struct {
	used, gone bool   // a code, a key
	available  int64  // of an account: credits that are neither spent nor held
	holds      string // " ID=AMOUNT " for each open one
	job        job
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
	case "queue":
		begun := o.job.id == ""
		if begun {
			o.job = job{id: r.id, phase: work.VideoAccepted, node: c.node}
		}
		return r.ok == begun && r.id == o.job.id, o
	case "take over":
		taken := r.id == o.job.id && o.job.node != c.node && !o.job.phase.Final()
		o.job.node = c.node
		return taken, o
	case "step":
		if c.base != o.job {
			return !r.ok, o
		}
		o.job = o.job.step(c.to)
		return r.ok, o
	}
	return r.have == o.available, o // a look at the account when all holds have ended
}

// step returns the job in another phase. The step to VideoSubmitting is the one before its provider is called.
func (j job) step(to work.VideoPhase) job {
	j.phase = to
	if to == work.VideoSubmitting {
		j.attempts++
	}
	if to.Final() {
		j.node = ""
	}
	return j
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

// jobOwner owns all jobs.
const jobOwner state.Owner = "owner"

// queue makes a job with an idempotency key, unless there is one.
func queue(s *state.State, once string) (r result, err error) {
	id, err := state.NewID("video_", time.Now(), crand.Reader)
	if err != nil {
		return r, err
	}
	r.id, err = state.Do(ctx, s, func(tx *state.Tx) (string, error) {
		if v, found := work.FindVideoByOnce(tx.View(), jobOwner, once); found {
			return v.ID, nil
		}
		_, err := work.PutVideo(tx, work.Video{ID: id, Owner: jobOwner, Once: once, Phase: work.VideoAccepted,
			Created: tx.Now(), Deadline: tx.Now().Add(time.Hour)})
		return id, err
	})
	r.ok = err == nil && r.id == id
	return r, err
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
	case "queue":
		return queue(s, c.object)
	case "step":
		err = state.Run(ctx, s, func(tx *state.Tx) error {
			v, _ := work.FindAnyVideo(tx.View(), c.base.id)
			next := c.base.step(c.to)
			v.Phase, v.Attempts = next.phase, next.attempts
			base := work.Video{ID: c.base.id, Phase: c.base.phase, Attempts: c.base.attempts, Node: c.base.node}
			_, err := work.ChangeVideo(tx, &base, v)
			return err
		})
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
		state.ErrNotFound, work.ErrVideoChanged} {
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
	jobs    []string // their idempotency keys
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
	c.node = s.Node()
	if c.kind == "take over" {
		h.takeOver(client, s, c)
		return
	}
	called := time.Since(h.begun)
	r, err := carry(s, c, code)
	h.note(client, called, c, r, err)
}

// takeOver takes the jobs of the other node over, and notes each of them as a call. The other node has not ended and
// goes on with steps of them, as one that was frozen does.
func (h *histories) takeOver(client int, s *state.State, c call) {
	called := time.Since(h.begun)
	taken, err := work.TakeOverVideos(ctx, s, func(n state.Node) bool { return n != c.node })
	if err != nil {
		h.note(client, called, c, result{}, err)
	}
	for _, v := range taken {
		if c.object = v.Once; slices.Contains(h.jobs, c.object) {
			h.note(client, called, c, result{ok: true, id: v.ID}, nil)
		}
	}
}

func (h *histories) note(client int, called time.Duration, c call, r result, err error) {
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

// following has the phases that a job can have after another one. It is accepted again if its provider has refused it.
var following = map[work.VideoPhase][]work.VideoPhase{
	work.VideoAccepted:   {work.VideoSubmitting},
	work.VideoSubmitting: {work.VideoQueued, work.VideoQueued, work.VideoAccepted},
	work.VideoQueued:     {work.VideoFinalizing},
	work.VideoFinalizing: {work.VideoCompleted, work.VideoFailed},
}

// chooseForJob returns the next step of a job if the node works on it, and else a call that begins or takes over jobs.
func chooseForJob(s *state.State, once string) call {
	v, found := work.FindVideoByOnce(s.View(), jobOwner, once)
	after := following[v.Phase]
	switch {
	case !found || len(after) == 0:
		return call{object: once, kind: "queue"}
	case v.Node != s.Node():
		return call{kind: "take over"}
	}
	return call{object: once, kind: "step", to: after[rand.IntN(len(after))],
		base: job{id: v.ID, phase: v.Phase, attempts: v.Attempts, node: v.Node}}
}

// choose returns a call of a node at random. Most holds are ended by two callers at once, and most steps of jobs made.
func (h *histories) choose(s *state.State) call {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch n := rand.IntN(13); {
	case n >= 10:
		return chooseForJob(s, h.jobs[rand.IntN(len(h.jobs))])
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
