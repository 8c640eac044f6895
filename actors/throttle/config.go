package throttle

import "time"

// The classes of service. In each round every owner that waits has one turn. The owners with
// the lowest class have theirs first, and a turn of an owner that has only Background requests
// is worth a quarter. A request that has waited for half of its time goes before the other
// requests of its own owner, and before no other owner's.
const (
	Interactive = iota
	Normal
	Background
	classCount
)

// ClassOf returns the class of a service_tier that a client sent; unknown tiers are Normal.
func ClassOf(tier string) int {
	switch tier {
	case "priority", "fast":
		return Interactive
	case "flex", "batch":
		return Background
	}
	return Normal
}

// Config holds the limits of one provider. A limit of zero is no limit.
type Config struct {
	RequestsPerMinute int
	TokensPerMinute   int
	MaxInFlight       int
	// Borrows are the limits of which only the units count that Client.Borrow has got, none at first.
	Borrows [Limits]bool
	// Burst is the unused limit that is saved up. Zero means one minute's worth.
	Burst time.Duration

	QueuePerOwner int // tickets of one owner and class; 0: 64
	QueueTotal    int // tickets of all owners; 0: four times QueuePerOwner
	Reserve       int // places on top for Interactive; 0: 32
	// MaxWait bounds the wait of requests whose deadline is later. Zero sets no bound.
	MaxWait time.Duration

	Breaker Breaker
}

// withDefaults returns the configuration with the usual values in place of zeros. Negative limits stand for none.
func (c Config) withDefaults() Config {
	setDefault(&c.Burst, time.Minute)
	setDefault(&c.QueuePerOwner, 64)
	setDefault(&c.QueueTotal, 4*c.QueuePerOwner)
	setDefault(&c.Reserve, 32)
	c.RequestsPerMinute = max(c.RequestsPerMinute, 0)
	c.TokensPerMinute = max(c.TokensPerMinute, 0)
	c.MaxInFlight = max(c.MaxInFlight, 0)
	c.Breaker = c.Breaker.withDefaults()
	return c
}

// Divide leaves an equal part of each limit for one of so many processes. If they borrow, a limit below Indivisible
// stays whole, and its units are borrowed. Otherwise a process has at least 1 of each.
func (c *Config) Divide(processes int, borrow bool) {
	for i, limit := range []*int{&c.RequestsPerMinute, &c.TokensPerMinute, &c.MaxInFlight} {
		if c.Borrows[i] = borrow && *limit > 0 && *limit < Indivisible; !c.Borrows[i] {
			*limit = Share(*limit, processes)
		}
	}
}

// unlimited reports whether only the breaker can hold a request back.
func (c *Config) unlimited() bool {
	return c.RequestsPerMinute == 0 && c.TokensPerMinute == 0 && c.MaxInFlight == 0
}

// setDefault replaces a value that is not set, or is negative.
func setDefault[T int | float64 | time.Duration](v *T, to T) {
	if *v <= 0 {
		*v = to
	}
}
