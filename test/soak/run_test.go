package soak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"stagedoor/http/admin"
	"stagedoor/test/harness"
)

// Options configure a run.
type Options struct {
	Binary string        // the path of the gateway's program
	Dir    string        // the data directory, empty at first
	Seed   uint64        // of the moments of the kills and of what writers do
	Cycles int           // starts that are followed by a check or a load
	Load   time.Duration // how long the load of a cycle lasts at most
	// Steps, if not 0, replaces Load: in each cycle every writer completes this many
	// steps, however long that takes on a busy machine, and then the kill comes.
	Steps int64
	// Tamper is called with the directory after every kill under load; nil:
	// nothing is. It is for tests of the oracles.
	Tamper func(dir string) error
}

// Report holds the findings of a run. A run without a fault has no entry in Wrong.
type Report struct {
	// InStartUp and InCheck are those of the Kills that came while the gateway started or was checked.
	Cycles, Kills, InStartUp, InCheck int
	// Checked are acknowledged writes by kind, each counted once, when it was found after a kill.
	Checked map[string]int
	Unknown int // calls whose answer a kill took
	// Done and Undone are those of them that turned out to have been carried out
	// or not, where that can be found out.
	Done, Undone int
	Wrong        []string
}

// Total is the number of acknowledged writes that were checked.
func (r *Report) Total() int {
	n := 0
	for _, k := range r.Checked {
		n += k
	}
	return n
}

// maxWrong is the number of faults at which a run ends, because more of them would say nothing new.
const maxWrong = 20

// writer is one source of load with its oracle. step and check never run at the
// same time. Both return errLost when the process has gone.
type writer interface {
	// step makes the next write and notes what its answer says.
	step(ctx context.Context) error
	// check compares the gateway with the notes. It looks at what no check has seen, and if all is set at everything.
	check(ctx context.Context, all bool) error
}

const (
	auditEvery   = 20
	startUp      = 150 * time.Millisecond // a start takes about as long
	killInStart  = 0.2                    // of the cycles
	killInCheck  = 0.1
	leastSteps   = 40              // of all writers before a kill under load
	patience     = 2 * time.Minute // for them, on a busy machine
	graceOfRuns  = "1m"            // of the processes that forgive a lost refresh answer
	codeLifetime = "10m"
	adminToken   = "the-soaks-token-of-administration"
)

// soak is a run: the process under test, its writers and what was found.
type soak struct {
	options    Options
	config     harness.Config
	random     *rand.Rand
	gateway    *gateway
	process    *harness.Gateway
	control    *admin.Client
	writers    []writer
	payers     []*payer
	redeems    []*redeemer
	depositors []*depositor
	report     Report

	mu    sync.Mutex  // of report and kills, while writers run
	kills []time.Time // when the process was killed
}

// Run soaks a gateway. Its error means that the run could not be made, or was
// given up; what was found is in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	address, err := harness.FreeAddr()
	if err != nil {
		return nil, err
	}
	s := &soak{
		options: o,
		random:  randomOf(o.Seed),
		gateway: newGateway(address),
		config:  configuration(address, o.Dir),
	}
	s.report.Checked = map[string]int{}
	err = s.run(ctx)
	if err != nil && s.process != nil {
		err = errors.Join(err, s.process.Kill(), fmt.Errorf("the gateway's log:\n%s", s.process.Logs()))
	}
	return &s.report, err
}

// randomOf returns the source of randomness of a seed, so that a run can be repeated.
func randomOf(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// configuration has a price of one micro-dollar for a token of input and ten for
// one of output, so that what a reply must cost needs no rounding.
func configuration(address, dir string) harness.Config {
	c := harness.CatchAll(harness.Provider{Shape: "sandbox"})
	for name, m := range c.Models {
		m.Price = &harness.Price{Input: inputPrice, Output: outputPrice}
		c.Models[name] = m
	}
	c.Listen, c.Data = []string{address}, dir
	c.OAuth = &harness.OAuth{CodeTTL: codeLifetime}
	c.Admin = &harness.Admin{Token: adminToken}
	c.Limits = &harness.Limits{Requests: 20_000, BodyMiB: 512} // keys that were revoked are tried as often as one likes
	return c
}

// run prepares the state and repeats cycles until their number is reached or too much is wrong.
func (s *soak) run(ctx context.Context) error {
	if err := s.prepare(ctx); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	for s.report.Cycles < s.options.Cycles && ctx.Err() == nil {
		if err := s.cycle(ctx); err != nil {
			return fmt.Errorf("cycle %d: %w", s.report.Cycles, err)
		}
		if len(s.report.Wrong) >= maxWrong {
			return errors.New("too much is wrong to go on")
		}
	}
	return cmp.Or(ctx.Err(), s.finish(ctx))
}

// cycle starts the gateway, checks what is there, loads it and kills it. Some
// kills come while it starts or is checked.
func (s *soak) cycle(ctx context.Context) error {
	s.report.Cycles++
	if s.random.Float64() < killInStart {
		if err := s.killStarting(); err != nil {
			return err
		}
	}
	if err := s.start(); err != nil {
		return err
	}
	if s.random.Float64() < killInCheck {
		return s.killChecking(ctx)
	}
	if err := s.checkAll(ctx, false); err != nil {
		return err
	}
	if s.report.Cycles%auditEvery == 0 {
		if err := errors.Join(s.kill(), s.audit(ctx, recovered), s.start()); err != nil {
			return err
		}
	}
	if err := s.killLoaded(ctx); err != nil {
		return err
	}
	if s.report.Cycles%(auditEvery/2) == 0 {
		return s.audit(ctx, killed)
	}
	return nil
}

// finish checks everything once more, ends the gateway gracefully and audits it.
func (s *soak) finish(ctx context.Context) error {
	if err := s.start(); err != nil {
		return err
	}
	if err := s.checkAll(ctx, true); err != nil {
		return err
	}
	if err := s.process.Stop(); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	s.process = nil
	return errors.Join(s.audit(ctx, recovered), s.findStored())
}

// spawn starts a process. One half of the processes have a grace time for refresh tokens, and the other half end a
// family of tokens when an old one is used. Kills must do no harm to either.
func (s *soak) spawn() (err error) {
	s.config.OAuth.RefreshGrace = "0s"
	forgives := s.random.IntN(2) == 0
	if forgives {
		s.config.OAuth.RefreshGrace = graceOfRuns
	}
	for _, w := range s.writers {
		if g, ok := w.(*grantee); ok {
			g.forgives = forgives
		}
	}
	s.process, err = harness.Spawn(s.options.Binary, s.config)
	return err
}

// start starts the process and waits until it is ready.
func (s *soak) start() error {
	if err := s.spawn(); err != nil {
		return err
	}
	if err := s.process.AwaitReady(); err != nil {
		return fmt.Errorf("it does not start again: %w", err)
	}
	return s.reach()
}

// reach connects to the process's control socket, which is there a moment before
// or after it is ready.
func (s *soak) reach() (err error) {
	for range 100 {
		if s.control, err = admin.Dial(filepath.Join(s.options.Dir, admin.SocketName)); err == nil {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return err
}

// killedAfter reports whether the process was killed after a moment.
func (s *soak) killedAfter(moment time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.kills, moment.Before)
}

// kill kills the process and searches its log for secrets.
func (s *soak) kill() error {
	s.mu.Lock()
	s.kills = append(s.kills, time.Now())
	s.mu.Unlock()
	err := s.process.Kill()
	s.report.Kills++
	if err != nil {
		return fmt.Errorf("kill: %w\nits log:\n%s", err, s.process.Logs())
	}
	s.findLeaks("the log", []byte(s.process.Logs()))
	s.process = nil
	return nil
}

// killStarting kills the process at a random moment of its start, in which it recovers what the last one left.
func (s *soak) killStarting() error {
	if err := s.spawn(); err != nil {
		return err
	}
	time.Sleep(s.moment(startUp))
	s.report.InStartUp++
	return s.kill()
}

// moment is a random part of a time, which the seed decides.
func (s *soak) moment(within time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(within)))
}

// killChecking kills the process during a check. Checks write too: they redeem codes and rotate tokens.
func (s *soak) killChecking(ctx context.Context) error {
	s.report.InCheck++
	at := time.Now().Add(s.moment(s.options.Load / 4))
	checked := make(chan error, 1)
	go func() { checked <- s.checkAll(ctx, false) }()
	time.Sleep(time.Until(at))
	err := s.kill()
	if failed := <-checked; failed != nil && !errors.Is(failed, errLost) {
		return errors.Join(err, failed)
	}
	return err
}

// killLoaded runs all writers at once and kills the gateway under their load: at a random moment, or when every writer
// has completed Options.Steps. A writer whose call the kill has interrupted counts as one unknown answer.
func (s *soak) killLoaded(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(s.writers))
	var busy sync.WaitGroup // until every writer has completed Options.Steps
	busy.Add(len(s.writers))
	var completed atomic.Int64 // steps of all writers
	for _, w := range s.writers {
		go func() {
			done := sync.OnceFunc(busy.Done)
			defer done()
			for steps := int64(1); ; steps++ {
				if err := w.step(ctx); err != nil {
					ended <- err
					return
				}
				completed.Add(1)
				if steps == s.options.Steps {
					done()
					<-ctx.Done()
				}
			}
		}()
	}
	if s.options.Steps > 0 {
		busy.Wait()
	} else {
		time.Sleep(s.moment(s.options.Load))
		for until := time.Now().Add(patience); completed.Load() < leastSteps && time.Now().Before(until); {
			time.Sleep(time.Millisecond)
		}
	}
	err := s.kill()
	cancel() // for writers that are between calls
	for range s.writers {
		switch failed := <-ended; {
		case errors.Is(failed, errLost):
			s.report.Unknown++
		case !errors.Is(failed, context.Canceled):
			err = errors.Join(err, failed)
		}
	}
	if err != nil || s.options.Tamper == nil {
		return err
	}
	return s.options.Tamper(s.options.Dir)
}

// checkAll lets all writers check the process at the same time, and joins their errors.
func (s *soak) checkAll(ctx context.Context, all bool) error {
	failed := make([]error, len(s.writers))
	var wg sync.WaitGroup
	for i, w := range s.writers {
		wg.Go(func() { failed[i] = w.check(ctx, all) })
	}
	wg.Wait()
	return errors.Join(failed...)
}

// found counts an acknowledged write that is there.
func (s *soak) found(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Checked[kind]++
}

// settled counts a call whose answer was lost by whether it was carried out.
func (s *soak) settled(done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if done {
		s.report.Done++
	} else {
		s.report.Undone++
	}
}

// wrong adds a fault of the gateway to the report. It may be called from several goroutines.
func (s *soak) wrong(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Wrong = append(s.report.Wrong, fmt.Sprintf("cycle %d: ", s.report.Cycles)+fmt.Sprintf(format, args...))
}

// Kinds lists what was checked, in a fixed order.
func (r *Report) Kinds() []string {
	var kinds []string
	for k, n := range r.Checked {
		kinds = append(kinds, fmt.Sprintf("%s %d", k, n))
	}
	slices.Sort(kinds)
	return kinds
}
