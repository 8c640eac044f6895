package ledger

import (
	"slices"
	"time"

	"stagedoor/state/budget"
	"stagedoor/state/money"
)

// This file is the part of the core that works where several processes change the accounts. Each has an allowance for
// each key that it serves (money.Allowance), out of which it grants holds at once. All that follows from that is in
// memory until the next commit that is made anyway:
//
//	free of the allowance + parts of holds that have no entry = the durable allowance + what is queued or in flight
//
// A Begin that is journaled takes its part out of the durable allowance. A settlement takes its charge from there if
// its hold has no entry, and else gives back what is left of the part. The process that has an allowance is the only
// one that changes its amount, except for TakeBack, after that process has ended.

const (
	// usualHolds is the number of usual holds that an allowance should have free. A hold that finds too little doubles
	// the number, up to mostHolds and once for each Grant, also while that is in flight: a Grant takes a commit, and a
	// busy key would use up the same number before each. It is asked for when less than half of it is left.
	usualHolds = 20
	mostHolds  = 64 * usualHolds
	// returnAfter is the time without a hold after which an allowance is returned.
	returnAfter = 10 * time.Second
	// recallPause is the time for which a process asks for no allowance after one was recalled or was too small to be
	// given. The account or a budget is near its end then, and the journal decides each hold.
	recallPause = 10 * time.Second
)

// others has what the core of an account needs to know of other processes.
type others struct {
	// room returns what the account and the budgets of a hold cover by what is durable, besides allowances.
	room func(*bounds) int64
	// usable reports whether allowances may be used now: this process has not been silent for so long that it may have
	// been expelled, all processes know of allowances, and the account is not in debt.
	usable func() bool
	// processes returns how many share the account.
	processes func() int64
}

// allowance has what is in memory of one of this process's allowances.
type allowance struct {
	name   money.AllowanceName
	limits []money.Limit // under which it was granted
	terms  int           // how often limits have changed
	free   int64         // not held. It is negative while a charge above its hold waits for its commit
	usual  int64         // amount of a hold, as a moving average
	holds  int64         // so many usual holds should be free
	asked  bool          // a Grant is queued or in flight
	grown  bool          // holds was doubled since the last Grant, or there was none yet
	used   time.Time     // of the last hold
	paused time.Time     // until when no Grant is asked for, or zero
}

// spare returns what is free of an allowance, which may be nil.
func (a *allowance) spare() int64 {
	if a == nil {
		return 0
	}
	return a.free
}

// want returns how much should be free.
func (a *allowance) want() int64 {
	if a.usual > budget.MaxCredits/a.holds {
		return budget.MaxCredits
	}
	return max(a.usual, 1) * a.holds
}

// allowanceOf returns the allowance for the requests of a key. What was granted under other limits is returned first,
// because it may be more than they allow.
func (c *core) allowanceOf(key string, b *bounds) *allowance {
	name := money.AllowanceName{Key: key}
	for _, n := range b.names {
		name.Group = n
	}
	a := c.allowances[name]
	if a == nil {
		a = &allowance{name: name, holds: usualHolds, grown: true}
		c.allowances[name] = a
	}
	if limits := b.limits(); !slices.Equal(limits, a.limits) {
		a.limits = limits
		a.terms++
		c.giveBack(a)
	}
	b.terms = a.terms
	return a
}

// adoptAllowances takes over the allowances of this process that another actor of the account has left. They are
// returned when they are looked at for the first time.
func (c *core) adoptAllowances(all []money.Allowance) {
	for i := range all {
		name := all[i].AllowanceName
		c.allowances[name] = &allowance{name: name, holds: usualHolds, grown: true, free: all[i].Amount}
	}
}

// takePart takes as much of an amount out of an allowance as that has. It reports whether the hold is covered by that,
// so that it can be granted without the journal.
func (c *core) takePart(now time.Time, a *allowance, amount int64) (part int64, covered bool) {
	if now.After(a.paused) {
		a.paused = time.Time{}
	}
	if a.free > 0 && c.others.usable() {
		part, covered = min(a.free, amount), amount <= a.free
	}
	if part < amount && !a.grown && a.paused.IsZero() {
		a.holds = min(2*a.holds, mostHolds)
		a.grown = true
	}
	a.free -= part
	if a.used = now; a.usual == 0 {
		a.usual = amount
	}
	a.usual += (amount - a.usual) / 8
	return part, covered
}

// refill asks for more of an allowance if it is half empty.
func (c *core) refill(a *allowance) {
	if a == nil || a.asked || !a.paused.IsZero() || a.free >= a.want()/2 || !c.others.usable() {
		return
	}
	a.asked = true
	c.push(op{kind: money.Grant, allowance: a})
}

// extendShared does what extend does where other processes change the account. It grants the addition at once if the
// allowance covers it. Otherwise the journal decides, and it returns errPending.
func (c *core) extendShared(now time.Time, h *hold, amount int64, w waiter) error {
	a := h.bounds.allowance
	switch {
	// boundsOf has the allowance returned if the budgets have changed since the hold began.
	case a != nil && c.boundsOf(h.known.key).allowance == a && amount <= a.free && c.others.usable():
		h.amount += amount
		h.part += amount
		a.free -= amount
		a.used = now
		if h.begun {
			c.push(op{kind: money.Extend, hold: h, amount: amount, part: amount})
		}
		c.refill(a)
		return nil
	case h.begun:
		c.push(op{kind: money.Extend, hold: h, amount: amount, waiter: w})
	default: // the journal does not know the hold, so the allowance grows by the amount
		c.push(op{kind: money.Grant, hold: h, amount: amount, waiter: w})
	}
	return errPending
}

// effect returns by how much the end of a hold with a charge changes the free part of its allowance.
func (h *hold) effect(charge int64) int64 {
	if h.id == 0 {
		return h.part - charge
	}
	return min(h.part, h.amount-charge)
}

// pushEnd queues an operation that ends a hold, and frees the rest of the hold if no caller waits. A charge above the
// hold is taken at once.
func (c *core) pushEnd(o op) {
	a := o.hold.bounds.allowance
	if a == nil {
		c.urgent = c.others != nil
		c.push(o)
		return
	}
	if o.effect = o.hold.effect(o.amount); o.waiter == nil || o.effect < 0 {
		o.anticipated = o.effect
		a.free += o.effect
	}
	// The rest of what was not held out of the allowance is free for all processes.
	c.urgent = c.urgent || o.hold.part < o.hold.amount
	c.push(o)
	c.giveBackOld(a, &o)
}

// giveBackOld returns what is free of an allowance after an operation, if no more is to be kept, or if the operation
// may have freed what was granted under limits that have changed since.
func (c *core) giveBackOld(a *allowance, o *op) {
	old := o.kind == money.Grant && o.terms != a.terms || o.hold != nil && o.hold.bounds.terms != a.terms
	if old || !a.paused.IsZero() {
		c.giveBack(a)
	}
}

// giveBack returns what is free of an allowance.
func (c *core) giveBack(a *allowance) {
	if a.free <= 0 {
		return
	}
	c.push(op{kind: money.Return, allowance: a, amount: a.free})
	c.urgent = true
	a.free = 0
}

// recalled returns what is free of an allowance. No more is asked for until some time has passed.
func (c *core) recalled(name money.AllowanceName, paused time.Time) {
	if a := c.allowances[name]; a != nil {
		a.paused = paused
		c.giveBack(a)
	}
}

// giveBackAll returns what is free of all allowances, and what will be.
func (c *core) giveBackAll(paused time.Time) {
	for name := range c.allowances {
		c.recalled(name, paused)
	}
}

// giveBackIdle returns the allowances that were not used for some time, and forgets them when nothing refers to them.
func (c *core) giveBackIdle(now time.Time) {
	forget := c.settled()
	for name, a := range c.allowances {
		if now.Sub(a.used) < returnAfter {
			continue
		}
		if forget && a.free == 0 {
			delete(c.allowances, name)
			delete(c.keys, name.Key)
		}
		c.giveBack(a)
	}
}

// addAllowance sets what the posting of an operation needs where other processes change the account: the limits, the
// allowance, and by how much the operation changes the durable amount of the allowance. It notes in o the effects that
// allowanceCommitted and allowanceRefused need later.
func (c *core) addAllowance(p *money.Posting, o *op) {
	switch o.kind {
	case money.Begin, money.Extend:
		p.Limits = o.hold.bounds.limits
		o.move = -o.part
	case money.Settle:
		if o.effect = o.hold.effect(o.amount); o.hold.id == 0 {
			o.move = -o.amount
		} else {
			o.move = o.effect
		}
	case money.Release:
		if o.effect, o.move = o.hold.part, o.hold.part; o.hold.id == 0 {
			o.move = 0
		}
	case money.Return:
		o.move = -o.amount
	case money.Grant:
		limits := o.allowance.limits // the writer calls Limits while the actor may set others
		o.terms = o.allowance.terms
		p.Limits = func() []money.Limit { return currentLimits(limits, c.budgets) }
		if p.Parts, p.Least = 1, o.amount; o.hold == nil {
			p.Parts, p.Least = 2*max(c.others.processes(), 1), o.allowance.usual
			p.Amount = max(o.allowance.want()-o.allowance.free, o.allowance.usual)
		}
	}
	if o.allowance != nil {
		p.Allowance, p.Move = &o.allowance.name, o.move
	}
}

// currentLimits returns limits with their budgets as they are now.
func currentLimits(limits []money.Limit, b budgets) []money.Limit {
	now := slices.Clone(limits)
	for i := range now {
		now[i].Budget = b.BudgetOf(now[i].Scope)
	}
	return now
}

// allowanceCommitted applies what a durable op did to its allowance.
func (c *core) allowanceCommitted(o *op, p *money.Posted) {
	a := o.allowance
	if a == nil {
		return
	}
	switch o.kind {
	case money.Grant:
		a.free += p.Moved
		if o.hold == nil {
			a.asked, a.grown = false, false
		} else if h := o.hold; h.phase == open {
			a.free -= o.amount
			h.amount += o.amount
			h.part += o.amount
			if h.begun { // in the meantime
				c.push(op{kind: money.Extend, hold: h, amount: o.amount, part: o.amount})
			}
		}
	case money.Begin, money.Extend, money.Settle, money.Release, money.Return:
		// The journal takes no more than the allowance has. The account paid the rest.
		a.free += o.effect - o.anticipated + p.Moved - o.move
	}
	if o.kind == money.Return && p.Moved == 0 {
		return // repeating it at once would find nothing either, again and again
	}
	c.giveBackOld(a, o)
}

// allowanceRefused undoes what an op that will not be durable did to its allowance.
func (c *core) allowanceRefused(o *op) {
	a := o.allowance
	if a == nil {
		return
	}
	switch o.kind {
	case money.Grant:
		if o.hold == nil {
			a.asked, a.paused = false, a.used.Add(recallPause)
		}
		return
	case money.Begin:
		if o.hold.waited && o.hold.phase == open {
			a.free += o.part
		}
	case money.Extend:
		a.free += o.part
		o.hold.part -= o.part
	case money.Settle, money.Release:
		a.free -= o.anticipated
		if o.waiter == nil && o.hold.id == 0 {
			a.free += o.hold.part
		}
	case money.Return:
		a.free += o.amount
		return // it is not repeated at once
	}
	c.giveBackOld(a, o)
}
