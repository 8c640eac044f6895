package throttle_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/throttle"
	"stagedoor/state/journal"
)

// loans lends units in memory. Those that are free go to the process that asks next, if others do not wait longer.
type loans struct {
	mu     sync.Mutex
	begin  time.Time
	limits map[string]*lentLimit
}

type lentLimit struct {
	units []lentUnit
	wants []wanting // the one that waits longest is first
}

type lentUnit struct {
	process string // empty: free
	credit  time.Duration
	at      time.Time // when it was given back
}

type wanting struct {
	process string
	units   int
}

// loansOf is the lender of one process.
type loansOf struct {
	*loans
	process string
}

func (l *loansOf) Lend(_ context.Context, loan journal.Loan) (lent journal.Lent, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.limits[loan.Limit]
	if limit == nil {
		limit = &lentLimit{}
		l.limits[loan.Limit] = limit
		for range loan.Size {
			limit.units = append(limit.units, lentUnit{credit: time.Minute, at: l.begin})
		}
	}
	for _, n := range loan.Back {
		limit.units[n-1] = lentUnit{credit: loan.Credit, at: time.Now()}
	}
	limit.want(l.process, loan.Need-limit.has(l.process))
	nodes := map[string]bool{l.process: true}
	for i := range limit.units {
		u := &limit.units[i]
		if u.process == "" {
			u.process = limit.next(l.process, loan.Need > 0)
		}
		if u.process != "" {
			nodes[u.process] = true
		}
		if u.process == l.process {
			lent.Units = append(lent.Units, journal.Unit{Number: i + 1, Credit: u.credit + time.Since(u.at)})
		}
	}
	for _, w := range limit.wants {
		nodes[w.process] = true
	}
	lent.Part = loan.Size / len(nodes)
	for _, w := range limit.wants {
		if w.process != l.process {
			lent.Wanted += w.units
			lent.Short += max(min(w.units, max(lent.Part, 1)-limit.has(w.process)), 0)
		}
	}
	return lent, nil
}

// has returns how many units a process has.
func (l *lentLimit) has(process string) (n int) {
	for _, u := range l.units {
		if u.process == process {
			n++
		}
	}
	return n
}

// want notes that a process waits for units, or for none any more.
func (l *lentLimit) want(process string, units int) {
	i := slices.IndexFunc(l.wants, func(w wanting) bool { return w.process == process })
	switch {
	case i >= 0 && units > 0:
		l.wants[i].units = units
	case i >= 0:
		l.wants = slices.Delete(l.wants, i, i+1)
	case units > 0:
		l.wants = append(l.wants, wanting{process, units})
	}
}

// next returns the process that gets a free unit: of those that wait the one with the fewest, or the one that asks if
// it needs any.
func (l *lentLimit) next(asks string, needs bool) string {
	if len(l.wants) == 0 {
		if needs {
			return asks
		}
		return ""
	}
	w := slices.MinFunc(l.wants, func(a, b wanting) int { return cmp.Compare(l.has(a.process), l.has(b.process)) })
	l.want(w.process, 0)
	l.want(w.process, w.units-1) // after the others
	return w.process
}

// process is one of several, with its own limiter of the same provider.
type process struct {
	*throttle.Client
	served atomic.Int64
}

// share runs body with so many processes that borrow the limits of a provider from each other.
func share(t *testing.T, count int, config throttle.Config, body func(t *testing.T, all []*process)) {
	t.Helper()
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		lender := &loans{begin: time.Now(), limits: map[string]*lentLimit{}}
		config.Divide(count, true)
		ctx, stop := context.WithCancel(t.Context())
		var all []*process
		var wg sync.WaitGroup
		for i := range count {
			client, err := throttle.Spawn(sys, fmt.Sprintf("provider%d", i), config)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, &process{Client: client})
			wg.Go(func() {
				b := throttle.NewBorrower("one", client)
				mine := &loansOf{lender, fmt.Sprint(i)}
				for ctx.Err() == nil {
					if err := b.Renew(t.Context(), mine, time.Minute); err != nil {
						t.Error(err)
					}
					time.Sleep(250 * time.Millisecond)
				}
				for ended := false; !ended; time.Sleep(250 * time.Millisecond) {
					var err error
					if ended, err = b.End(t.Context(), mine, time.Minute); err != nil {
						t.Error(err)
					}
				}
			})
		}
		body(t, all)
		stop()
		wg.Wait()
	})
}

// TestProcessesNeverUseMoreOfASmallLimitTogether: eight processes of 40 requests each have two places.
func TestProcessesNeverUseMoreOfASmallLimitTogether(t *testing.T) {
	const places, processes, requests = 2, 8, 40
	share(t, processes, throttle.Config{MaxInFlight: places}, func(t *testing.T, all []*process) {
		var busy atomic.Int64
		var wg sync.WaitGroup
		for i, p := range all {
			for range requests {
				wg.Go(func() {
					permit, err := p.Acquire(t.Context(), throttle.Ask{Owner: "anna"})
					if err != nil {
						t.Error(err)
						return
					}
					if n := busy.Add(1); n > places {
						t.Errorf("%d requests at a time, of %d", n, places)
					}
					time.Sleep(time.Duration(1+i) * 100 * time.Millisecond)
					busy.Add(-1)
					p.served.Add(1)
					permit.Release(throttle.Outcome{Kind: throttle.Success})
				})
			}
		}
		time.Sleep(time.Minute)
		for i, p := range all { // although none has ended with all of its requests
			if p.served.Load() == 0 {
				t.Errorf("process %d was never served", i)
			}
		}
		wg.Wait()
	})
}

// TestASmallRateIsThatOfAllProcesses, of which each has a unit now and then. The first minute may use what was saved
// up.
func TestASmallRateIsThatOfAllProcesses(t *testing.T) {
	const perMinute, minutes = 5, 10
	share(t, 8, throttle.Config{RequestsPerMinute: perMinute, QueuePerOwner: 1000}, func(t *testing.T, all []*process) {
		ctx, cancel := context.WithTimeout(t.Context(), minutes*time.Minute)
		defer cancel()
		var granted atomic.Int64
		var wg sync.WaitGroup
		for _, p := range all {
			for range 100 {
				wg.Go(func() {
					permit, err := p.Acquire(ctx, throttle.Ask{Owner: "anna", Deadline: time.Now().Add(time.Hour)})
					if err != nil {
						return // the test is over
					}
					granted.Add(1)
					p.served.Add(1)
					permit.Release(throttle.Outcome{Kind: throttle.Success})
				})
			}
		}
		wg.Wait()
		if n := granted.Load(); n > perMinute*(minutes+1) || n < perMinute*minutes/2 {
			t.Errorf("%d requests in %d minutes of %d", n, minutes, perMinute)
		}
		for i, p := range all {
			if p.served.Load() == 0 {
				t.Errorf("process %d was never served", i)
			}
		}
	})
}

// TestALoneProcessHasAllOfASmallLimit also holds that its requests wait for the first loan only.
func TestALoneProcessHasAllOfASmallLimit(t *testing.T) {
	share(t, 1, throttle.Config{MaxInFlight: 3, RequestsPerMinute: 15}, func(t *testing.T, all []*process) {
		var permits []*throttle.Permit
		for i := range 3 {
			asked := time.Now()
			permit, err := all[0].Acquire(t.Context(), throttle.Ask{Owner: "anna"})
			if err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(asked); i > 0 && waited > 0 || waited > 250*time.Millisecond {
				t.Errorf("request %d waited for %v", i, waited)
			}
			permits = append(permits, permit)
		}
		for _, p := range permits {
			p.Release(throttle.Outcome{Kind: throttle.Success})
		}
	})
}

// TestWhatUnitsHaveSavedUpCountsAlthoughAnotherLoanFailed: the units of the rate have saved up nothing. They are lent
// before the lender fails, with the next limit, for the first time.
func TestWhatUnitsHaveSavedUpCountsAlthoughAnotherLoanFailed(t *testing.T) {
	for _, late := range []bool{false, true} { // whether the lender fails because the time of the call is over
		kittest.Run(t, func(t *testing.T, sys *kit.System) {
			config := throttle.Config{RequestsPerMinute: 2, MaxInFlight: 1}
			config.Divide(2, true)
			client, err := throttle.Spawn(sys, "provider", config)
			if err != nil {
				t.Fatal(err)
			}
			asked, waited := time.Now(), make(chan time.Duration)
			go func() {
				permit, err := client.Acquire(t.Context(), throttle.Ask{Owner: "anna"})
				if err == nil {
					permit.Release(throttle.Outcome{Kind: throttle.Success})
				}
				waited <- time.Since(asked)
			}()
			synctest.Wait()
			limited, cancel := context.WithCancel(t.Context())
			defer cancel()
			failing := func(loan journal.Loan) error {
				if loan.Size == config.RequestsPerMinute {
					return nil
				}
				if late {
					cancel()
				}
				return journal.ErrUnreachable
			}
			b := throttle.NewBorrower("one", client)
			if err := b.Renew(limited, lenderFunc(failing), time.Minute); !errors.Is(err, journal.ErrUnreachable) {
				t.Error(err)
			}
			lender := lenderFunc(func(journal.Loan) error { return nil })
			if err := b.Renew(t.Context(), lender, time.Minute); err != nil {
				t.Error(err)
			}
			if got := <-waited; got != 30*time.Second {
				t.Errorf("late %v: a request of two a minute was granted after %v", late, got)
			}
		})
	}
}

// TestALowerLimitHoldsAlthoughTheLenderIsAway: the units of the higher one are still lent.
func TestALowerLimitHoldsAlthoughTheLenderIsAway(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		config := throttle.Config{MaxInFlight: 3}
		config.Divide(2, true)
		client, err := throttle.Spawn(sys, "provider", config)
		if err != nil {
			t.Fatal(err)
		}
		acquire := func() (*throttle.Permit, error) {
			return client.Acquire(t.Context(), throttle.Ask{Owner: "anna", Deadline: time.Now().Add(time.Second)})
		}
		go acquire() // it makes the limiter borrow, and keeps its place
		synctest.Wait()
		b := throttle.NewBorrower("one", client)
		if err := b.Renew(t.Context(), lenderFunc(func(journal.Loan) error { return nil }), time.Minute); err != nil {
			t.Fatal(err)
		}
		if _, err := acquire(); err != nil {
			t.Errorf("the second of three places: %v", err)
		}
		config.MaxInFlight = 2
		client.Configure(config)
		if _, err := acquire(); err == nil {
			t.Error("a third request has a place, of two")
		}
	})
}

// lenderFunc lends all units of a limit, with nothing saved up, unless it returns an error for the loan.
type lenderFunc func(loan journal.Loan) error

func (f lenderFunc) Lend(_ context.Context, loan journal.Loan) (lent journal.Lent, err error) {
	for i := range loan.Size {
		lent.Units = append(lent.Units, journal.Unit{Number: i + 1})
	}
	return lent, f(loan)
}
