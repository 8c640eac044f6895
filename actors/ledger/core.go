package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/money"
)

// linger bounds the time that operations without a waiter (holds and settlements of text requests,
// releases and progress) stay out of the journal. See the package comment.
const linger = 50 * time.Millisecond

// maxBatch bounds the postings of one commit.
const maxBatch = 512

// spareMost bounds the buffer that is kept for the next operations, so that one burst of
// requests does not keep its memory for as long as the account is used.
const spareMost = 2 * maxBatch

// phase is the state of a hold.
type phase uint8

const (
	open phase = iota
	ending
	ended
)

// hold is the money reserved for a request. The account's actor owns it.
type hold struct {
	id     uint64 // sequence of its begin, or 0 while the journal does not contain it
	begun  bool   // its begin is queued, in flight or durable
	waited bool   // its caller waits until the begin is durable
	amount int64
	bounds *bounds
	phase  phase
	began  time.Time
	part   int64 // of amount, that is held out of the allowance of bounds
	known  known // does not change
	// outcome is returned to callers that end it again.
	outcome error
	also    []waiter // callers that ended it again while it was ending
}

// known is the part of a receipt that is known at the begin.
type known struct {
	request, key, model, provider string
	scopes                        []string
}

// knownOf returns the part of a receipt that an open hold keeps. The rest is only known at its end.
func knownOf(r *money.Receipt) known { return known{r.Request, r.Key, r.Model, r.Provider, r.Scopes} }

// receipt returns a receipt with the known part, for a hold that ends without one of its own.
func (k *known) receipt() *money.Receipt {
	return &money.Receipt{Request: k.request, Key: k.key, Model: k.model, Provider: k.provider, Scopes: k.scopes}
}

// waiter receives the result when an operation is durable or has failed.
type waiter interface{ done(err error) }

// op is a decision that is to be journaled.
type op struct {
	kind    money.EntryKind
	hold    *hold
	amount  int64
	extra   int64 // for Settle, what is held beyond the hold until the charge is durable; may be negative
	reason  string
	once    string       // of an adjustment; see money.Payment
	by      *state.Actor // of an adjustment
	receipt *money.Receipt
	waiter  waiter // nil if no caller waits

	// Of an operation that changes an allowance. part is the amount that a Begin or Extend takes out of it, move is the
	// Move of the posting, and effect is by how much the operation changes what is free of the allowance. So much of
	// the effect has been anticipated.
	allowance                       *allowance
	part, move, effect, anticipated int64
	terms                           int // of the allowance when a Grant was asked for
}

// retried reports whether a failed op is tried again. An op with a waiter is not, because its
// caller learns of the failure and may repeat the request.
func (o *op) retried() bool { return o.waiter == nil }

// core decides about one account. All amounts are micro-dollars below
// budget.MaxCredits, so that no sum of them overflows.
type core struct {
	account  string
	unfunded bool  // see money.Account.Unfunded
	credits  int64 // durable
	spent    int64 // durable
	held     int64 // of all open holds, journaled or not
	debits   int64 // taken from credits, not durable yet

	// others, if not nil, says that other processes change the account, too. The core then decides holds that an
	// allowance covers. The journal decides the others, which wait for it.
	others     *others
	allowances map[money.AllowanceName]*allowance
	urgent     bool // an operation in ops frees what other processes may wait for

	budgets   budgets
	shared    *shared
	user      *quota // of all requests of the account
	scopes    map[budget.Scope]*quota
	keys      map[string]*bounds
	open      map[*hold]struct{}
	unwritten []*hold // not begun, oldest first; may have ended
	ops       []op    // to be journaled next, in order
	waiting   int     // how many of ops have a waiter
	inFlight  []op
	spare     []op            // buffer for the next ops
	postings  []money.Posting // buffer for the next batch
}

// newCore returns the core of an account with its durable state: credits, spending, and the holds
// that an earlier process has left open.
func newCore(a money.Account, holds []money.Hold, b budgets, s *shared) *core {
	c := &core{account: a.ID, unfunded: a.Unfunded(), credits: a.Credits, spent: a.Spent, budgets: b, shared: s,
		scopes: make(map[budget.Scope]*quota), keys: make(map[string]*bounds), open: make(map[*hold]struct{})}
	c.user = newQuota(budget.Scope{Kind: budget.UserScope, ID: a.ID}, b)
	s.forget(a.ID)
	for i := range holds {
		c.adopt(&holds[i])
	}
	return c
}

// adopt takes over a durable hold that another process has begun.
func (c *core) adopt(durable *money.Hold) *hold {
	h := &hold{id: durable.ID, begun: true, amount: durable.Amount, began: durable.Began,
		known: knownOf(&durable.Receipt), bounds: c.boundsNamed(&durable.Receipt)}
	c.open[h] = struct{}{}
	c.hold(h, h.amount)
	return h
}

// available returns the amount that can be held. It is negative while the account is in debt.
func (c *core) available() int64 {
	if c.unfunded {
		return budget.MaxCredits - c.held
	}
	return c.credits - c.debits - c.spent - c.held
}

// idle reports whether the core can be dropped without losing anything.
func (c *core) idle() bool { return c.settled() && len(c.allowances) == 0 }

// settled reports whether everything is durable and no hold is open.
func (c *core) settled() bool { return len(c.open) == 0 && len(c.ops) == 0 && len(c.inFlight) == 0 }

// validAmount returns an error for an amount that no hold can have.
func validAmount(amount int64) error {
	if amount < 0 || amount > budget.MaxCredits {
		return fmt.Errorf("%w: an amount of %d", state.ErrInvalid, amount)
	}
	return nil
}

// insufficient returns the error for an amount that the account does not have. A debt is shown as nothing available,
// because a client cannot use a negative amount.
func (c *core) insufficient(amount int64) error {
	return fmt.Errorf("%d asked, %d available: %w", amount, max(c.available(), 0), money.ErrInsufficient)
}

// beginHold holds amount, or refuses it. If the caller must wait, it returns the hold and errPending, and notifies w
// when the hold is durable or refused. The caller waits if durable is set, or if the journal decides because other
// processes change the account and the allowance does not cover the amount.
func (c *core) beginHold(now time.Time, amount int64, receipt money.Receipt, durable bool, w waiter) (*hold, error) {
	if err := validAmount(amount); err != nil {
		return nil, err
	}
	b := c.boundsOf(receipt.Key)
	receipt.Scopes = b.names
	h := &hold{amount: amount, bounds: b, began: now, known: knownOf(&receipt)}
	covered := true
	if c.others != nil {
		h.part, covered = c.takePart(now, b.allowance, amount)
	} else if err := c.take(now, b, amount); err != nil {
		return nil, err
	}
	c.open[h] = struct{}{}
	var pending error
	if durable || !covered {
		h.begun, h.waited = true, true
		c.push(op{kind: money.Begin, hold: h, amount: amount, receipt: h.known.receipt(), waiter: w, part: h.part})
		pending = errPending
	} else {
		c.unwritten = append(c.unwritten, h)
	}
	c.refill(b.allowance)
	return h, pending
}

// extend adds to a hold, or refuses the addition. If the journal decides that, it notifies w and extend returns
// errPending.
func (c *core) extend(now time.Time, h *hold, amount int64, w waiter) error {
	if err := validAmount(amount); err != nil {
		return err
	}
	if h.phase != open {
		return state.ErrFinished
	}
	if c.others != nil {
		return c.extendShared(now, h, amount, w)
	}
	if err := c.take(now, h.bounds, amount); err != nil {
		return err
	}
	h.amount += amount
	if h.begun {
		c.push(op{kind: money.Extend, hold: h, amount: amount})
	}
	return nil
}

// progress records the amount that is charged for the hold after a crash.
func (c *core) progress(h *hold, amount int64) {
	if h.phase == open && h.begun && amount > 0 {
		c.push(op{kind: money.Progress, hold: h, amount: min(amount, h.amount)})
	}
}

// Flags of a settlement above its hold.
const (
	FlagOverHold = "over_hold" // the request cost more than was held
	// FlagOverrun says that it also cost more than the account had or a budget covered. All
	// of it is charged, and no hold is granted until the debt is paid or the budget is renewed.
	FlagOverrun = "overrun"
)

// settle ends a hold with a charge. It also charges an amount above the hold, even if the
// account does not have it, because the cost of a request does not depend on its hold. If w is
// nil, the settlement is repeated until it is durable, so the rest of the hold is free at once:
// the next request of the client may need it.
func (c *core) settle(now time.Time, h *hold, s *Settlement, w waiter) error {
	if h.phase != open {
		return c.joinEnd(h, w)
	}
	amount := min(max(s.Amount, 0), budget.MaxCredits)
	c.cancelBegin(h)
	o := op{kind: money.Settle, hold: h, reason: s.Reason, receipt: h.merge(s.Receipt), waiter: w}
	if w == nil {
		o.extra = min(amount-h.amount, 0)
		c.hold(h, o.extra)
	}
	if amount > h.amount {
		o.extra = amount - h.amount
		flags := []string{FlagOverHold}
		if o.extra > c.room(now, h.bounds) {
			flags = append(flags, FlagOverrun)
		}
		flagged := *o.receipt // a copy, because the hold may be settled again
		flagged.Flags = slices.Concat(flagged.Flags, flags)
		o.receipt = &flagged
		c.hold(h, o.extra)
	}
	o.amount = amount
	h.phase = ending
	c.pushEnd(o)
	return errPending
}

// release ends a hold without a charge. The money is free at once: a release is retried until
// it is durable, and a crash before that releases the hold, too.
func (c *core) release(h *hold, reason string, receipt *money.Receipt, w waiter) error {
	if h.phase != open {
		return c.joinEnd(h, w)
	}
	c.cancelBegin(h)
	c.hold(h, -h.amount)
	o := op{kind: money.Release, hold: h, reason: reason, receipt: h.merge(receipt), waiter: w}
	c.pushEnd(o)
	h.phase = ended
	delete(c.open, h)
	if w == nil {
		return nil
	}
	return errPending
}

// cancelBegin removes a begin that has a waiter and is not in a batch yet. Its caller has given up,
// and one entry will record the begin and the end.
func (c *core) cancelBegin(h *hold) {
	if !h.waited || !h.begun || h.id != 0 {
		return
	}
	for i := range c.ops {
		if o := &c.ops[i]; o.kind == money.Begin && o.hold == h {
			o.waiter.done(state.ErrFinished)
			c.ops = append(c.ops[:i], c.ops[i+1:]...)
			c.waiting--
			h.begun = false
			return
		}
	}
}

// joinEnd returns the result for a caller that ends a hold which is already ending or has ended. A caller that waits
// gets errPending while the end is not durable, and w is notified then.
func (c *core) joinEnd(h *hold, w waiter) error {
	if h.phase == ended || w == nil {
		return h.outcome
	}
	h.also = append(h.also, w)
	return errPending
}

// merge completes a receipt with the fields that were known at the begin.
func (h *hold) merge(r *money.Receipt) *money.Receipt {
	if r == nil {
		return h.known.receipt()
	}
	r.Request, r.Key, r.Scopes = h.known.request, h.known.key, h.known.scopes
	r.Model, r.Provider = cmp.Or(r.Model, h.known.model), cmp.Or(r.Provider, h.known.provider)
	return r
}

// adjust corrects the credits. Money that is taken is unavailable at once. Money that is
// given can be spent when it is durable.
func (c *core) adjust(m *adjusting, w waiter) error {
	amount := m.amount
	if amount < 0 {
		if err := validAmount(-amount); err != nil {
			return err
		}
		if c.others == nil && -amount > c.available() {
			return c.insufficient(-amount)
		}
		c.debits -= amount
	}
	c.push(op{kind: money.Adjust, amount: amount, reason: m.reason, once: m.once, by: &m.by, waiter: w})
	return errPending
}

// push queues an operation for the journal. A hold against an allowance takes its allowance with it.
func (c *core) push(o op) {
	if h := o.hold; c.others != nil && h != nil && o.allowance == nil {
		o.allowance = h.bounds.allowance
	}
	c.ops = append(c.ops, o)
	if o.waiter != nil {
		c.waiting++
	}
}

// complete reports whether every open hold waits for the journal, so that waiting longer
// could not make the batch larger.
func (c *core) complete() bool { return c.waiting >= len(c.open) }

// gather returns how long a batch waits for more operations. It waits longer if more callers
// wait already: a commit costs about the same for one operation as for many, and a wait saves
// little if few requests arrive.
func (c *core) gather() time.Duration { return time.Duration(min(c.waiting, gatherMost)) * gatherEach }

// A batch waits gatherEach for each waiter, of whom at most gatherMost count.
const (
	gatherEach = 2 * time.Millisecond
	gatherMost = 6
)

// due returns the time at which operations without a waiter must be journaled, or false if
// there are none. It is now for one that frees money which other processes may wait for.
func (c *core) due(now time.Time) (time.Time, bool) {
	if len(c.ops) > 0 && c.urgent {
		return now, true
	}
	if len(c.ops) > 0 {
		return now.Add(linger), true
	}
	c.trim()
	if len(c.unwritten) == 0 {
		return time.Time{}, false
	}
	return c.unwritten[0].began.Add(linger), true
}

// trim forgets unwritten holds that have ended.
func (c *core) trim() {
	for len(c.unwritten) > 0 && c.unwritten[0].phase == ended {
		c.unwritten[0] = nil
		c.unwritten = c.unwritten[1:]
	}
}

// next returns the next batch. It returns nil if there is nothing to journal or if a batch is
// in flight.
func (c *core) next(now time.Time) []money.Posting {
	if len(c.inFlight) > 0 {
		return nil
	}
	if len(c.ops) == 0 && len(c.unwritten) == 0 {
		return nil
	}
	n := min(len(c.ops), maxBatch)
	batch := c.ops[:n]
	if n == len(c.ops) {
		// The begins follow all releases, because they may hold money that a release frees.
		batch = append(batch, c.overdue(now, maxBatch-n)...)
	}
	c.ops, c.spare = append(c.spare, c.ops[n:]...), nil
	c.waiting, c.urgent = 0, c.urgent && len(c.ops) > 0
	for i := range c.ops {
		if c.ops[i].waiter != nil {
			c.waiting++
		}
	}
	c.inFlight = batch
	c.postings = postings(c.postings[:0], batch)
	for i := range batch {
		if c.others != nil {
			c.addAllowance(&c.postings[i], &batch[i])
		}
	}
	return c.postings
}

// overdue begins at most so many of the holds that have lived longer than linger. The journal
// refuses them while the account is in debt; a crash then releases them, as it would have
// before.
func (c *core) overdue(now time.Time, most int) []op {
	var batch []op
	for c.trim(); len(c.unwritten) > 0 && len(batch) < most; c.trim() {
		h := c.unwritten[0]
		if now.Sub(h.began) < linger {
			break
		}
		if h.phase == open && !h.begun {
			h.begun = true
			batch = append(batch, op{kind: money.Begin, hold: h, amount: h.amount, receipt: h.known.receipt(),
				allowance: h.bounds.allowance, part: h.part})
		}
		c.unwritten = c.unwritten[1:]
	}
	return batch
}

// postings converts a batch for the journal and reuses the buffer to. It reads the holds,
// which must not change meanwhile.
func postings(to []money.Posting, batch []op) []money.Posting {
	to = slices.Grow(to, len(batch))[:len(batch)]
	for i := range batch {
		o := &batch[i]
		to[i] = money.Posting{Kind: o.kind, Amount: o.amount, Reason: o.reason, Once: o.once, By: o.by,
			Receipt: o.receipt}
		if o.hold != nil {
			to[i].Hold, to[i].Held, to[i].Began = o.hold.id, o.hold.amount, o.hold.began
		}
	}
	return to
}

// posted applies the outcome of the batch in flight. err, if not nil, is the failure of the
// whole batch.
func (c *core) posted(account money.Account, results []money.Posted, err error) {
	batch := c.inFlight
	c.inFlight = nil
	if err == nil {
		c.credits, c.spent = account.Credits, account.Spent
		c.user.refresh()
	}
	var retries []op
	unbegun := false
	for i := range batch {
		o := &batch[i]
		failure := err
		if err == nil {
			failure = results[i].Err
		}
		unbegun = unbegun || failure != nil && o.kind == money.Begin && o.retried()
		switch {
		case failure == nil:
			c.committed(o, &results[i])
		case err != nil && o.retried():
			c.retry(o, &retries)
		default:
			c.refused(o, failure)
		}
	}
	if unbegun {
		c.dropExtends()
	}
	if len(retries) > 0 {
		c.ops = append(retries, c.ops...)
	}
	clear(c.postings)
	if cap(batch) <= spareMost {
		clear(batch[:cap(batch)]) // the ops behind the batch have been copied; free what they refer to
		c.spare = batch[:0]
	}
}

// dropExtends removes the queued extensions of holds whose Begin was in flight and has failed, so that the journal has
// no entry for them. The journal would refuse such extensions, which would free their part of the allowance although
// the amount of the hold, and so its next Begin or its settlement, includes it. An extension whose caller still waits
// becomes a Grant, which asks the journal for money for the allowance and needs no entry of the hold.
func (c *core) dropExtends() {
	without := func(o *op) bool { return o.kind == money.Extend && !o.hold.begun && !o.hold.waited }
	c.ops = slices.DeleteFunc(c.ops, func(o op) bool { return without(&o) && o.waiter == nil })
	for i := range c.ops {
		if o := &c.ops[i]; without(o) {
			o.kind = money.Grant
		}
	}
}

// committed applies an op that is durable now.
func (c *core) committed(o *op, p *money.Posted) {
	c.allowanceCommitted(o, p)
	switch o.kind {
	case money.Begin:
		o.hold.id = p.Sequence
	case money.Extend:
		if c.others != nil && o.part == 0 {
			o.hold.amount += o.amount
		}
	case money.Settle:
		for i, spend := range p.Spends {
			if i < len(o.hold.bounds.all) {
				o.hold.bounds.all[i].settled(spend)
			}
		}
		c.hold(o.hold, -o.hold.amount-o.extra)
		c.finish(o.hold, nil)
	case money.Adjust:
		c.debits += min(o.amount, 0)
	}
	notify(o, nil)
}

// retry queues an op without a waiter again.
func (c *core) retry(o *op, retries *[]op) {
	if o.kind == money.Grant {
		o.allowance.asked = false // the next hold asks again
		return
	}
	if o.kind != money.Begin {
		*retries = append(*retries, *o)
		return
	}
	o.hold.begun = false
	if o.hold.phase != ended {
		c.unwritten = append([]*hold{o.hold}, c.unwritten...)
	}
}

// refused undoes an op that will not be durable.
func (c *core) refused(o *op, err error) {
	c.allowanceRefused(o)
	switch o.kind {
	case money.Begin:
		o.hold.begun = false
		if o.hold.waited && o.hold.phase == open {
			c.hold(o.hold, -o.hold.amount)
			o.hold.phase, o.hold.outcome = ended, err
			delete(c.open, o.hold)
		}
	case money.Settle:
		c.hold(o.hold, -o.extra)
		if o.waiter == nil { // the journal does not know the hold, so it cannot be charged
			c.hold(o.hold, -o.hold.amount)
			c.finish(o.hold, err)
			return
		}
		o.hold.phase = open // its owner may settle it again, or release it
		for _, w := range o.hold.also {
			w.done(err)
		}
		o.hold.also = nil
	case money.Adjust:
		c.debits += min(o.amount, 0)
	}
	notify(o, err)
}

// finish marks a hold as ended and gives its outcome to the callers that have ended it again.
func (c *core) finish(h *hold, err error) {
	h.phase, h.outcome = ended, err
	delete(c.open, h)
	for _, w := range h.also {
		w.done(err)
	}
	h.also = nil
}

// notify gives the caller that waits for an operation its result.
func notify(o *op, err error) {
	if o.waiter != nil {
		o.waiter.done(err)
	}
}

// moving reports whether a request has a hold whose end is not durable.
func (c *core) moving(request string) bool {
	of := func(o op) bool { return o.receipt != nil && o.receipt.Request == request }
	if slices.ContainsFunc(c.ops, of) || slices.ContainsFunc(c.inFlight, of) {
		return true
	}
	for h := range c.open {
		if h.known.request == request {
			return true
		}
	}
	return false
}

// openHold returns the open hold of a request, the oldest if there are several.
func (c *core) openHold(request string) *hold {
	var found *hold
	for h := range c.open {
		if h.known.request == request && h.phase == open && (found == nil || h.began.Before(found.began)) {
			found = h
		}
	}
	return found
}
