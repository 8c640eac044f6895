package throttle

import "time"

// bucket is a token bucket that measures its content in time: one nanosecond flows in per
// nanosecond, and a unit costs a minute divided by the limit. Filling needs no rounding, and
// costs are rounded up, so the bucket never lets more through than its limit. A new limit
// needs no conversion of credit.
//
// The zero limit lets everything through.
type bucket struct {
	limit  int           // units per minute
	burst  time.Duration // the most credit that is saved up
	credit time.Duration // below zero: more was used than was estimated
	at     time.Time
}

// maxUnits keeps the product of units and a minute within 63 bits.
const maxUnits = 100_000_000

// newBucket returns a bucket that is full or empty.
func newBucket(now time.Time, limit int, burst time.Duration, full bool) bucket {
	b := bucket{limit: limit, burst: burst, at: now}
	if full {
		b.credit = burst
	}
	return b
}

// refill adds the time since the last refill, which is what credit is measured in. The time is
// bounded before the addition, which could overflow after a long pause.
func (b *bucket) refill(now time.Time) {
	if d := now.Sub(b.at); d > 0 {
		b.credit = min(b.credit+min(d, 2*b.burst), b.burst)
		b.at = now
	}
}

// price returns the cost of n units, even if it is more than the bucket holds.
func (b *bucket) price(n int) time.Duration {
	if b.limit <= 0 || n <= 0 {
		return 0
	}
	units := time.Duration(min(n, maxUnits))
	limit := time.Duration(b.limit)
	return (units*time.Minute + limit - 1) / limit
}

// charge returns the cost of n units at admission. A request that is larger than the bucket
// waits for a full one, because it could never be served otherwise.
func (b *bucket) charge(n int) time.Duration { return min(b.price(n), b.burst) }

// wait returns the time until n units fit. The caller refills the bucket first.
func (b *bucket) wait(n int) time.Duration {
	if b.limit <= 0 {
		return 0
	}
	return max(0, b.charge(n)-b.credit)
}

// backlog returns the time until n units fit after others have been served.
func (b *bucket) backlog(others, n int) time.Duration {
	if b.limit <= 0 {
		return 0
	}
	return max(0, b.price(others)+b.charge(n)-b.credit)
}

// withLimit returns a copy of the bucket with another limit. Its credit needs no conversion, because it is measured in
// time.
func (b bucket) withLimit(limit int) *bucket {
	b.limit = limit
	return &b
}

// capacity returns how many units a full bucket lets through at once.
func (b *bucket) capacity() int {
	return int(float64(b.burst) * float64(b.limit) / float64(time.Minute))
}

// take charges n units that fit and returns the charge, for settle.
func (b *bucket) take(n int) time.Duration {
	charge := b.charge(n)
	b.credit -= charge
	return charge
}

// settle replaces a charge by the units used. The debt is bounded: one wrong estimate must
// not block the provider for longer than a full bucket.
func (b *bucket) settle(charge time.Duration, used int) {
	if b.limit <= 0 {
		return
	}
	b.credit = max(-b.burst, min(b.credit+charge-b.price(used), b.burst))
}

// lower reduces the credit to the units that the upstream reports as remaining. It never
// raises the credit above the configured limit.
func (b *bucket) lower(remaining int) {
	if b.limit > 0 {
		b.credit = min(b.credit, b.price(max(remaining, 0)))
	}
}

// configure changes the limit. A bucket that had no limit starts full.
func (b *bucket) configure(now time.Time, limit int, burst time.Duration) {
	if b.limit == limit && b.burst == burst {
		return
	}
	if b.limit <= 0 {
		*b = newBucket(now, limit, burst, true)
		return
	}
	b.refill(now)
	b.limit, b.burst = limit, burst
	b.credit = min(b.credit, burst)
}

// Level is the state of a limit as a client may see it (x-ratelimit headers).
type Level struct {
	Limit     int           // units per minute; 0: no limit
	Remaining int           // units that would be let through at once
	Reset     time.Duration // until the bucket is full again
}

// level returns the state of the bucket for rate-limit headers.
func (b *bucket) level(now time.Time) Level {
	if b.limit <= 0 {
		return Level{}
	}
	b.refill(now)
	remaining := int(float64(max(b.credit, 0)) * float64(b.limit) / float64(time.Minute))
	return Level{Limit: b.limit, Remaining: remaining, Reset: b.burst - b.credit}
}
