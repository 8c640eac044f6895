package throttle

import (
	"cmp"
	"sync/atomic"
	"time"
)

// core decides which requests are granted, queued and refused. It has no clock and no
// goroutine: the time is an argument, and one goroutine at a time may call it. The caller
// must call dispatch after every method that can free a place.
type core struct {
	config   Config
	whole    Config // with the limits of which config has the borrowed units
	requests bucket
	tokens   bucket
	queue    queue
	breaker  *breaker

	cooling   coolDowns
	trial     *ticket       // in flight although other requests are refused; see trials.go
	trialFrom time.Time     // the time before which no trial starts
	empty     bool          // nothing may be granted, because a borrowed limit has no unit
	service   time.Duration // moving average of how long a place is taken
	paused    bool
	closed    bool

	// shared outlives this incarnation. Requests that bypass the actor count in it, too.
	shared *shared
}

// shared holds the counters of a provider that survive a restart of its actor.
type shared struct {
	inFlight atomic.Int64
	granted  atomic.Int64
	waited   atomic.Int64         // nanoseconds in the queue, all tickets
	borrowed [Limits]atomic.Int64 // units, by limit
	refused  [reasonCount]atomic.Int64
	outcomes [kindCount]atomic.Int64
	paused   atomic.Bool
}

// newCore returns a core with full buckets and a closed breaker. If careful is set, after a
// crash, its buckets are empty and it probes first, because it cannot know what was used.
func newCore(now time.Time, config Config, s *shared, careful bool) *core {
	whole := config.withDefaults()
	config, empty := whole.borrowed(s)
	state := Shut
	if careful {
		state = HalfOpen
	}
	return &core{
		config:   config,
		whole:    whole,
		empty:    empty,
		requests: newBucket(now, config.RequestsPerMinute, config.Burst, !careful),
		tokens:   newBucket(now, config.TokensPerMinute, config.Burst, !careful),
		breaker:  newBreaker(now, config.Breaker, state),
		shared:   s,
		paused:   s.paused.Load(),
	}
}

// acquire decides a new ticket at once or queues it.
func (c *core) acquire(now time.Time, t *ticket) {
	t.index = -1
	t.class = min(max(t.class, Interactive), Background)
	if c.tokens.limit > 0 {
		// More than the bucket holds never fits, so it waits for a full one; release corrects it.
		t.tokens = min(t.tokens, max(c.tokens.capacity(), 1))
	}
	t.cost = costOf(t.tokens, c.config.TokensPerMinute > 0)
	if c.config.MaxWait > 0 {
		if last := t.asked.Add(c.config.MaxWait); t.deadline.IsZero() || last.Before(t.deadline) {
			t.deadline = last
		}
	}
	c.refill(now)
	admits := c.breaker.admits(now)
	switch {
	case c.closed:
		c.refuse(t, Refused{Reason: Closed, RetryAfter: time.Second})
	case !admits && c.breaker.state == Open && !c.mayTry(now, t):
		c.refuse(t, c.breakerRefusal(now))
	case c.cooling.left(now, t.model) > longCool && !c.nextTrial(t):
		c.refuse(t, Refused{Reason: TooLate, RetryAfter: c.cooling.left(now, t.model)})
	case !t.deadline.IsZero() && !now.Before(t.deadline):
		c.refuse(t, Refused{Reason: Expired, RetryAfter: c.retryAfter(now, t)})
	case c.queue.total == 0 && c.ready(now, t):
		c.grant(now, t)
	default:
		c.enqueue(now, t)
	}
}

// enqueue queues a ticket. It refuses a ticket at once that could not be served before its
// deadline, so that its client can try elsewhere.
func (c *core) enqueue(now time.Time, t *ticket) {
	ahead, tokens := c.queue.ahead(t.owner, t.class)
	wait, limit := c.estimate(now, t, ahead, tokens)
	if !t.deadline.IsZero() && now.Add(wait).After(t.deadline) {
		c.refuse(t, Refused{Reason: TooLate, RetryAfter: max(wait, minRetry), Limit: limit})
		return
	}
	if !c.makeRoom(now, t) {
		c.refuse(t, Refused{Reason: Shed, RetryAfter: max(wait, minRetry), Limit: limit})
		return
	}
	t.position = ahead + 1
	t.schedule()
	c.queue.push(t)
}

// makeRoom reports whether a ticket may queue. If all places are taken, an owner that holds
// more of them than the ticket's owner loses its newest ticket, so one flood cannot close
// the queue to the other owners.
func (c *core) makeRoom(now time.Time, t *ticket) bool {
	if c.queue.count(t.owner, t.class) >= c.config.QueuePerOwner {
		return false
	}
	room := c.config.QueueTotal
	if t.class == Interactive {
		room += c.config.Reserve
	}
	if c.queue.total < room {
		return true
	}
	last := c.queue.excess(t.owner, t.class)
	if last == nil {
		return false
	}
	wait := c.retryAfter(now, last)
	c.queue.remove(last)
	c.refuse(last, Refused{Reason: Shed, RetryAfter: wait})
	return true
}

// ready reports whether t could be granted now if it were its turn.
func (c *core) ready(now time.Time, t *ticket) bool {
	return !c.paused && !c.empty &&
		!c.full() &&
		c.requests.wait(1) == 0 && c.tokens.wait(t.tokens) == 0 &&
		(c.cooling.left(now, t.model) <= 0 && c.breaker.admits(now) || c.mayTry(now, t))
}

// full reports whether as many calls are in flight as may be. 0 sets no limit.
func (c *core) full() bool {
	return c.config.MaxInFlight > 0 && c.shared.inFlight.Load() >= int64(c.config.MaxInFlight)
}

// grant charges for t and sends the verdict. It takes the charge back if the caller has
// given up.
func (c *core) grant(now time.Time, t *ticket) {
	t.home, t.granted = c, now
	t.requestCharge, t.tokenCharge = c.requests.take(1), c.tokens.take(t.tokens)
	c.shared.inFlight.Add(1)
	// The breaker must know its probe before the caller can release it.
	c.breaker.noteGrant(t)
	if c.onlyTrials(now, t.model) {
		c.trial = t
	}
	if t.decide(nil) {
		c.shared.granted.Add(1)
		c.shared.waited.Add(int64(now.Sub(t.asked)))
		return
	}
	c.shared.inFlight.Add(-1)
	c.requests.credit += t.requestCharge
	c.tokens.credit += t.tokenCharge
	if c.breaker.probe == t {
		c.breaker.probe = nil
	}
	if c.trial == t {
		c.trial = nil
	}
}

// refuse answers a ticket, unless its caller has given up already, and counts the refusal.
func (c *core) refuse(t *ticket, r Refused) {
	if t.decide(&r) {
		c.shared.refused[r.Reason].Add(1)
	}
}

// cancel removes a ticket whose caller has given up from the queue.
func (c *core) cancel(t *ticket) {
	if t.flow != nil {
		c.queue.remove(t)
	}
}

// release frees the place of a ticket and learns from its outcome.
func (c *core) release(now time.Time, t *ticket, o *Outcome) {
	c.leave(now, o)
	if t.home == c {
		c.settle(now, t, o)
	} else { // it was granted before a restart, which began with empty buckets
		c.tokens.settle(0, o.TokensUsed)
	}
	c.breaker.record(now, t, o.Kind)
	o.Model = cmp.Or(o.Model, t.model)
	c.learn(now, o)
	if c.trial == t {
		c.endTrial(now, o)
	}
}

// releaseFree frees the place of a request that bypassed the actor and has no ticket.
func (c *core) releaseFree(now time.Time, o *Outcome, counted bool) {
	c.leave(now, o)
	c.tokens.settle(0, o.TokensUsed)
	if counted && o.Kind != Credential {
		c.breaker.judge(now)
	} else {
		c.breaker.record(now, nil, o.Kind)
	}
	c.learn(now, o)
}

// leave ends a call, which frees its place for another one and counts its outcome.
func (c *core) leave(now time.Time, o *Outcome) {
	c.shared.inFlight.Add(-1)
	c.shared.outcomes[o.Kind].Add(1)
	c.refill(now)
}

// settle corrects the buckets by what the request has really used.
func (c *core) settle(now time.Time, t *ticket, o *Outcome) {
	if o.Kind == NotSent || o.Kind == Unused {
		c.requests.settle(t.requestCharge, 0)
	} else {
		c.observe(now.Sub(t.granted))
	}
	if o.TokensUsed > 0 || o.Kind.unspent() {
		c.tokens.settle(t.tokenCharge, o.TokensUsed)
	}
}

// observe adds a duration to the moving average of the service time.
func (c *core) observe(took time.Duration) {
	if c.service == 0 {
		c.service = took
		return
	}
	c.service += (took - c.service) / 8
}

// learn applies the limits that the upstream reported.
func (c *core) learn(now time.Time, o *Outcome) {
	if o.RemainingRequests != nil {
		c.requests.lower(*o.RemainingRequests)
	}
	if o.RemainingTokens != nil {
		c.tokens.lower(*o.RemainingTokens)
	}
	c.cooling.start(now, o.Model, o.exhausted())
	switch o.Kind {
	case Success:
		c.cooling.served(now, o.Model)
	case RateLimited:
		c.cooling.refused(now, o.Model, o.RetryAfter)
	case Overloaded:
		c.cooling.start(now, o.Model, o.RetryAfter)
	}
}

// configure changes the limits and keeps queue and credit.
func (c *core) configure(now time.Time, config Config) {
	c.whole = config.withDefaults()
	c.config, c.empty = c.whole.borrowed(c.shared)
	c.requests.configure(now, c.config.RequestsPerMinute, c.config.Burst)
	c.tokens.configure(now, c.config.TokensPerMinute, c.config.Burst)
	if c.breaker.config != c.config.Breaker {
		// The counters start anew, because other goroutines may still hold the old breaker.
		c.breaker = c.breaker.withConfig(now, c.config.Breaker)
	}
}

// flush refuses all queued tickets.
func (c *core) flush(r Refused) {
	for t := c.queue.any(); t != nil; t = c.queue.any() {
		c.queue.remove(t)
		c.refuse(t, r)
	}
}

// close refuses all queued tickets and those that arrive later.
func (c *core) close() {
	c.closed = true
	c.flush(Refused{Reason: Closed, RetryAfter: time.Second})
}

// dispatch decides all queued tickets that can be decided at now. It returns the time at which it must be called again
// if nothing else happens, or zero if it need not be.
func (c *core) dispatch(now time.Time) time.Time {
	c.refill(now)
	c.sweep(now)
	if !c.breaker.admits(now) && c.breaker.state == Open {
		c.flush(c.breakerRefusal(now))
	}
	t := c.next(now)
	for ; t != nil && c.ready(now, t); t = c.next(now) {
		c.queue.serve(t)
		c.grant(now, t)
	}
	return c.wake(now, t)
}

// next returns the ticket whose turn it is among those whose models have no cool-down.
func (c *core) next(now time.Time) *ticket {
	if !c.cooling.active(now) {
		return c.queue.peek(nil)
	}
	return c.queue.peek(func(t *ticket) bool { return c.cooling.left(now, t.model) <= 0 || c.mayTry(now, t) })
}

// sweep refuses the tickets that have expired and promotes those that have aged.
func (c *core) sweep(now time.Time) {
	for t := c.queue.firstDue(); t != nil && !now.Before(t.due); t = c.queue.firstDue() {
		if t.deadline.IsZero() || now.Before(t.deadline) {
			c.queue.promote(t)
			continue
		}
		wait := c.retryAfter(now, t)
		c.queue.remove(t)
		c.refuse(t, Refused{Reason: Expired, RetryAfter: wait})
	}
}

// wake returns the time at which dispatch has something to do again: when the next ticket is
// due, when a cool-down ends, or when the head t may be granted. A head that waits for a
// place has no time, because a release triggers dispatch.
func (c *core) wake(now time.Time, t *ticket) time.Time {
	var next time.Time
	earlier := func(at time.Time) {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if d := c.queue.firstDue(); d != nil {
		earlier(d.due)
	}
	if !c.paused {
		earlier(c.cooling.next(now)) // also with an empty queue: requests may bypass the actor again
		if c.queue.total > 0 && c.trialFrom.After(now) {
			earlier(c.trialFrom)
		}
	}
	if t == nil || c.paused || c.empty || c.full() || c.breaker.state == HalfOpen && c.breaker.probe != nil {
		return next
	}
	earlier(now.Add(max(c.requests.wait(1), c.tokens.wait(t.tokens), c.rest(now, t))))
	return next
}

// refill brings both buckets up to the time.
func (c *core) refill(now time.Time) {
	c.requests.refill(now)
	c.tokens.refill(now)
}

// breakerRefusal returns the refusal of a request while the breaker is open.
func (c *core) breakerRefusal(now time.Time) Refused {
	return Refused{Reason: BreakerOpen, RetryAfter: max(c.breaker.until.Sub(now), minRetry)}
}

// retryAfter returns how long the client of t should wait before it tries again.
func (c *core) retryAfter(now time.Time, t *ticket) time.Duration {
	tickets, tokens := c.queue.ahead(t.owner, t.class)
	if t.flow != nil { // t counted itself
		tickets, tokens = max(tickets-1, 0), max(tokens-t.tokens, 0)
	}
	wait, _ := c.estimate(now, t, tickets, tokens)
	return max(wait, minRetry)
}

// estimate returns how long t would wait behind so many tickets and their tokens, and the
// limit that makes it wait longest. Buckets and cool-downs are exact unless other owners'
// requests arrive; the wait for a place is computed from the average service time. Of borrowed limits all units count,
// because those that are missing may be borrowed in the meantime.
func (c *core) estimate(now time.Time, t *ticket, tickets, tokens int) (wait time.Duration, limit string) {
	longer := func(d time.Duration, name string) {
		if d > wait {
			wait, limit = d, name
		}
	}
	longer(c.rest(now, t), "")
	longer(c.requests.withLimit(c.whole.RequestsPerMinute).backlog(tickets, 1), LimitRequests)
	longer(c.tokens.withLimit(c.whole.TokensPerMinute).backlog(tokens, t.tokens), LimitTokens)
	if places := c.places(); places > 0 && c.shared.inFlight.Load()+int64(tickets) >= int64(places) {
		longer(c.service*time.Duration(tickets+1)/time.Duration(places), LimitConcurrency)
	}
	return wait, limit
}

// places returns how many requests may be in flight if all units of the limit are borrowed. 0 is no limit.
func (c *core) places() int {
	if c.breaker.state == HalfOpen {
		return 1
	}
	return c.whole.MaxInFlight
}

// free reports whether requests may bypass the actor, so that only the breaker counts them.
func (c *core) free(now time.Time) bool {
	return c.config.unlimited() && c.breaker.state == Shut &&
		!c.paused && !c.closed && c.queue.total == 0 && !c.cooling.active(now)
}
