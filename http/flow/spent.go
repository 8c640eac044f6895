package flow

import (
	"context"
	"sync"
	"time"

	"stagedoor/state/requestlog"
)

// RequestLog opens the log of requests, from which the cost of providers is read. Its implementation is in
// actors/requests.
type RequestLog interface {
	Store() (requestlog.Reader, error)
}

// spentAge is the time for which the cost of today is not read again, and spentTime that in which it must be found.
const (
	spentAge  = 15 * time.Second
	spentTime = 2 * time.Second
)

// spent has the cost of each provider of the day, as it was when it was last read.
type spent struct {
	mu    sync.Mutex
	at    time.Time
	costs map[string]int64
}

// spentToday returns what each provider has cost since 0:00 UTC, in micro-dollars, or nil if no log is kept or the log
// does not answer. The caller must not change the map.
func (o *Overview) spentToday(ctx context.Context) map[string]int64 {
	if o.RequestLog == nil {
		return nil
	}
	s, now := &o.spent, o.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.at.IsZero() && now.Sub(s.at) < spentAge {
		return s.costs
	}
	s.at, s.costs = now, nil
	log, err := o.RequestLog.Store()
	if err != nil {
		return nil
	}
	// Others wait for this reader, so it does not end with the request of the first of them.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), spentTime)
	defer cancel()
	costs := make(map[string]int64)
	day := now.UTC().Truncate(24 * time.Hour)
	err = log.Spent(ctx, &requestlog.SpentQuery{From: day, To: day.Add(24 * time.Hour), Step: 24 * time.Hour},
		func(of *requestlog.Spent) error { costs[of.Provider] += of.MicroUSD; return nil })
	if err == nil {
		s.costs = costs
	}
	return s.costs
}
