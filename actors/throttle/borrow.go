package throttle

import (
	"context"
	"slices"
	"time"

	"stagedoor/actors/kit"
	"stagedoor/state/journal"
)

// The limits of a provider, in the order of Config.Borrows.
const (
	requestLimit = iota
	tokenLimit
	placeLimit
	// Limits is their number.
	Limits
)

// limitNames are the names of the limits in the store, by which all processes know them.
var limitNames = [Limits]string{LimitRequests, LimitTokens, LimitConcurrency}

// Indivisible is the limit from which on a limit is divided into equal parts. The units of a smaller one are borrowed,
// because some of more processes would have no part of it.
const Indivisible = 16

// holding has the units of a limit that a limiter uses from now on.
type holding struct {
	units  int
	gained []time.Duration // what the units that are new to it have saved up
}

// demand has the requests of a limiter, and the credit of its buckets.
type demand struct {
	inFlight, waiting int
	credit            [Limits]time.Duration
}

// borrowed returns the configuration with the borrowed units in place of the limits, and whether one has none.
func (c Config) borrowed(s *shared) (_ Config, empty bool) {
	for i, limit := range []*int{&c.RequestsPerMinute, &c.TokensPerMinute, &c.MaxInFlight} {
		if !c.Borrows[i] || *limit == 0 {
			continue
		}
		units := int(s.borrowed[i].Load())
		empty = empty || units == 0
		*limit = min(max(units, 1), *limit) // 0 would be no limit, and the limit may have been more before
	}
	return c, empty
}

// sizes returns the limits that are borrowed, and 0 for the others.
func (c Config) sizes() (sizes [Limits]int) {
	for i, limit := range []int{c.RequestsPerMinute, c.TokensPerMinute, c.MaxInFlight} {
		if c.Borrows[i] {
			sizes[i] = limit
		}
	}
	return sizes
}

// borrow counts the units that the limiter has from now on. The credit of a bucket is that of each of its units on
// average.
func (c *core) borrow(now time.Time, config Config, limits *[Limits]holding) {
	c.refill(now)
	for i := range limits {
		before := c.shared.borrowed[i].Swap(int64(limits[i].units))
		b := c.bucket(i)
		if b == nil {
			continue
		}
		for _, credit := range limits[i].gained {
			b.credit = (b.credit*time.Duration(before) + credit) / time.Duration(before+1)
			before++
		}
	}
	c.configure(now, config)
}

// bucket returns the bucket of a limit, or nil for places.
func (c *core) bucket(limit int) *bucket {
	switch limit {
	case requestLimit:
		return &c.requests
	case tokenLimit:
		return &c.tokens
	}
	return nil
}

// demand returns what the limiter has under way and saved up.
func (c *core) demand(now time.Time) demand {
	c.refill(now)
	return demand{inFlight: int(c.shared.inFlight.Load()), waiting: c.queue.total,
		credit: [Limits]time.Duration{requestLimit: c.requests.credit, tokenLimit: c.tokens.credit}}
}

// Borrower borrows the units of a provider's limits for its limiter. One goroutine at a time may call it.
type Borrower struct {
	client *Client
	name   string // of the provider
	limits [Limits]borrowedLimit
}

// borrowedLimit is a limit of which units are borrowed.
type borrowedLimit struct {
	has   []int     // the numbers of the units
	use   int       // units that the limiter uses; it stops using the others before they are given back
	since time.Time // the last time that it got one
	// gained has what units have saved up that the limiter does not know of yet.
	gained []time.Duration
}

// NewBorrower returns a borrower that has nothing yet.
func NewBorrower(provider string, client *Client) *Borrower {
	return &Borrower{client: client, name: provider}
}

// Serves reports whether the borrower is that of a limiter.
func (b *Borrower) Serves(client *Client) bool { return b.client == client }

// turn is the time for which a process uses more than an equal part of the units while others have less.
const turn = 2 * time.Second

// Renew asks the lender for the units that the limiter needs, gives back those that it does not need, and passes the
// result to the limiter. It must be called often, because other processes wait for what this one has to give back, and
// a process that does not ask for some seconds does not wait any more. After an error the limiter uses what it had, and
// the next call passes on units that were lent before the error. after is journal.Loan.After.
func (b *Borrower) Renew(ctx context.Context, lender journal.Lender, after time.Duration) error {
	sizes := b.client.config.Load().sizes()
	d, err := b.tell(ctx)
	again := true
	for pass := 0; again && pass < 2 && err == nil; pass++ { // the second one gives back what the first one lets go
		again = false
		for i := range b.limits {
			need := min(d.inFlight+d.waiting, sizes[i])
			if len(b.limits[i].has) == 0 && need == 0 {
				continue
			}
			gives, err := b.renew(ctx, lender, i, sizes[i], need, &d, after)
			if err != nil {
				return err
			}
			again = again || gives
		}
		d, err = b.tell(ctx)
	}
	return err
}

// End gives back the units that no request uses any more, after the provider was removed. It reports whether those are
// all, so that the caller need not call it again.
func (b *Borrower) End(ctx context.Context, lender journal.Lender, after time.Duration) (bool, error) {
	d, left := demand{inFlight: b.client.InFlight()}, 0
	for i := range b.limits {
		l := &b.limits[i]
		if l.use = 0; len(l.has) == 0 {
			continue
		}
		if _, err := b.renew(ctx, lender, i, slices.Max(l.has), 0, &d, after); err != nil {
			return false, err
		}
		left += len(l.has)
	}
	return left == 0, nil
}

// renew does what Renew does, for one limit. It returns whether more units can be given back as soon as the limiter
// does not use them any more.
func (b *Borrower) renew(ctx context.Context, lender journal.Lender, limit, size, need int, d *demand,
	after time.Duration) (gives bool, err error) {
	l := &b.limits[limit]
	loan := journal.Loan{Limit: "providers/" + b.name + "/" + limitNames[limit], Size: size, Need: need,
		Back: l.spare(limit, d.inFlight), Credit: d.credit[limit], After: after}
	lent, err := lender.Lend(ctx, loan)
	if err != nil {
		return false, err
	}
	l.update(&lent, &loan)
	return l.use < len(l.has) && len(loan.Back) == 0, nil
}

// tell sends the limiter the units that it may use now, and returns the requests that it has. The error is kit.Rejected
// with ReasonDead as long as the limiter does not run.
func (b *Borrower) tell(ctx context.Context) (demand, error) {
	pid := b.client.pid.Load()
	if pid == nil {
		return demand{}, &kit.Rejected{Reason: kit.ReasonDead}
	}
	m := &borrowing{}
	for i := range b.limits {
		m.limits[i] = holding{b.limits[i].use, b.limits[i].gained}
	}
	d, err := kit.Ask(ctx, b.client.sys, pid, m)
	if err != nil {
		return demand{}, err
	}
	for i := range b.limits {
		b.limits[i].gained = nil
	}
	return d, nil
}

// spare returns the numbers of the units that are not used any more. Requests in flight take a unit of places each.
func (l *borrowedLimit) spare(limit, inFlight int) []int {
	used := l.use
	if limit == placeLimit {
		used = max(used, inFlight)
	}
	return l.has[min(used, len(l.has)):]
}

// update stores which units were lent and how much time the new ones have saved up, and decides how many of them to use
// from now on. The others are given back.
func (l *borrowedLimit) update(lent *journal.Lent, loan *journal.Loan) {
	known := make(map[int]bool, len(l.has))
	for _, n := range l.has {
		known[n] = true
	}
	for _, n := range loan.Back {
		known[n] = false
	}
	l.has = l.has[:0]
	now := time.Now()
	for _, u := range lent.Units {
		l.has = append(l.has, u.Number)
		if !known[u.Number] {
			l.gained = append(l.gained, u.Credit)
			l.since = now
		}
	}
	give := min(len(l.has)-loan.Need, lent.Wanted)
	if give <= 0 && now.Sub(l.since) >= turn {
		give = min(len(l.has)-lent.Part, lent.Short)
	}
	l.use = len(l.has) - max(give, 0)
}
