package videojob_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/actors/flow"
	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/ledger"
	"stagedoor/actors/throttle"
	"stagedoor/actors/videojob"
	"stagedoor/providers/catalog"
	"stagedoor/providers/sandbox/job"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
	"stagedoor/state"
	"stagedoor/state/blobs"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
	"stagedoor/state/work"
)

const (
	owner = state.Owner("user:7")
	// In micro-dollars; second is the price of one.
	credits = 1_000_000
	second  = 100_000
)

// vendor is a provider of videos that outlives the gateway's processes.
type vendor struct {
	engine     *job.Engine
	faults     job.Faults
	idempotent bool
	supports   func(video.Operation) bool
	// Called around a submission and before a poll, if they are set. An error is
	// the call's.
	before, after, polling func() error
	deleting               func() error // before a deletion
	absent                 atomic.Bool  // from the configuration
	seconds                int          // reported for finished videos; 0: none
	judge                  func(*upstream.Failure, string, time.Time) (throttle.Kind, time.Duration)

	mu   sync.Mutex
	keys []string // of submissions
	gone []string // deleted ids
}

func newVendor() *vendor {
	return &vendor{engine: &job.Engine{Now: time.Now, Time: 30 * time.Second}, idempotent: true}
}

func call(hook func() error) error {
	if hook == nil {
		return nil
	}
	return hook()
}

func (v *vendor) Supports(o video.Operation) bool { return v.supports == nil || v.supports(o) }
func (v *vendor) Idempotent() bool                { return v.idempotent }

func (v *vendor) Submit(ctx context.Context, key string, spec *video.Spec,
	open video.Opener) (string, video.Status, error) {
	if err := call(v.before); err != nil {
		return "", video.Status{}, err
	}
	if spec.Reference != nil {
		f, err := open(spec.Reference.ID)
		if err != nil {
			return "", video.Status{}, err
		}
		f.Close()
	}
	v.mu.Lock()
	v.keys = append(v.keys, key)
	v.mu.Unlock()
	once := key
	if !v.idempotent {
		once = ""
	}
	id, err := v.engine.Submit(
		ctx,
		once,
		job.Spec{Model: spec.Model, Prompt: spec.Prompt, Width: spec.Size.Width, Height: spec.Size.Height,
			Seconds: spec.Seconds, Faults: v.faults},
	)
	if err == nil {
		err = call(v.after)
	}
	return id, video.Status{State: video.Queued}, err
}

func (v *vendor) Poll(ctx context.Context, id string) (video.Status, error) {
	if err := call(v.polling); err != nil {
		return video.Status{}, err
	}
	s, err := v.engine.Poll(ctx, id)
	if s.State == video.Completed {
		s.Seconds = v.seconds
	}
	return s.Status, err
}

func (v *vendor) Content(ctx context.Context, id string, variant video.Variant, _ string) (*video.Content, error) {
	c, err := v.engine.Content(ctx, id, variant)
	if err != nil {
		return nil, err
	}
	return &video.Content{ReadCloser: struct {
		*job.Content
		closer
	}{c, closer{}}, Status: 200}, nil
}

type closer struct{}

func (closer) Close() error { return nil }

func (v *vendor) Delete(_ context.Context, id string) error {
	v.mu.Lock()
	v.gone = append(v.gone, id)
	v.mu.Unlock()
	if err := call(v.deleting); err != nil {
		return err
	}
	return v.engine.Delete(id)
}

// disk is a store that a process can be killed over: from then on it writes
// nothing.
type disk struct {
	journal.Store
	mu   sync.Mutex
	dead bool
	away func(journal.Op) bool // says which writes do not reach it; nil: all do
	// killed says after which write the process dies; nil: it lives.
	killed func(journal.Op) bool
}

var errKilled = errors.New("the process was killed")

func (d *disk) Commit(ctx context.Context, batches []journal.Batch) (journal.LSN, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return 0, errKilled
	}
	for _, b := range batches {
		if d.away != nil && slices.ContainsFunc(b.Ops, d.away) {
			return 0, journal.ErrUnreachable
		}
	}
	lsn, err := d.Store.Commit(ctx, batches)
	for _, b := range batches {
		for _, op := range b.Ops {
			if d.killed != nil && d.killed(op) {
				d.dead = true
			}
		}
	}
	if d.dead {
		return 0, errKilled
	}
	return lsn, err
}

func (d *disk) Close() error { return nil } // the next process opens it

func (d *disk) kill() {
	d.mu.Lock()
	d.dead = true
	d.mu.Unlock()
}

// process is the part of a gateway that videos need.
type process struct {
	t       *testing.T
	sys     *kit.System
	disk    *disk
	state   *state.State
	ledger  *ledger.Client
	limiter *throttle.Client
	svc     *videojob.Service
	vendor  *vendor
	flow    *flow.Registry
}

// start starts a process over what is on the disk.
func start(t *testing.T, store journal.Store, v *vendor, files *blobs.Store) *process {
	t.Helper()
	p := &process{t: t, disk: &disk{Store: store}, vendor: v, flow: flow.New(time.Now)}
	p.sys = kit.NewSystem(kit.Options{Logger: kittest.Logger(t), MaxIdle: -1})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	opened := store
	if _, shared := store.(journal.Shared); !shared {
		opened = statetest.DecideTwice(p.disk)
	}
	p.state, err = schema.Open(opened, time.Now)
	must(err)
	must(p.recover())
	p.ledger, err = ledger.New(p.sys, p.state)
	must(err)
	p.limiter, err = throttle.Spawn(p.sys, "p/vendor", throttle.Config{})
	must(err)
	p.svc, err = videojob.New(
		videojob.Options{System: p.sys, State: p.state, Ledger: p.ledger, Now: time.Now, Files: files, Flow: p.flow,
			Providers: func(name string) (videojob.Provider, bool) {
				return videojob.Provider{
						Limiter: p.limiter,
						Video:   v,
						Judge:   v.judge,
					}, name == "vendor" &&
						!v.absent.Load()
			}},
	)
	must(err)
	return p
}

// recover ends the holds of processes that have ended.
func (p *process) recover() error {
	ended, err := p.state.Ended(p.t.Context(), money.Nodes)
	if err != nil {
		return err
	}
	_, err = ledger.Recover(p.t.Context(), p.state, func(v state.View, h *money.Hold) bool {
		return !ended(h.Node) || videojob.Keeps(v, h)
	})
	return err
}

// end stops the process, one that was killed too.
func (p *process) end() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := p.sys.Stop(ctx); err != nil {
		p.t.Errorf("stop: %v", err)
	}
	p.state.Close()
}

// play runs body in a bubble with a process and an account that has money.
func play(t *testing.T, body func(t *testing.T, p *process)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemory()
		p := start(t, store, newVendor(), nil)
		p.credit()
		body(t, p)
		p.end()
		time.Sleep(5 * time.Second) // the actor library's last timer
	})
}

func (p *process) credit() {
	p.t.Helper()
	if err := p.ledger.Credit(p.t.Context(), "7", credits, "test"); err != nil {
		p.t.Fatal(err)
	}
}

func newRequest(prompt string) *videojob.Request {
	return &videojob.Request{
		Video: work.Video{
			Owner:     owner,
			Key:       "key_1",
			Account:   "7",
			Operation: string(video.Create),
			Model:     "video-2",
			Prompt:    prompt,
			Size:      "720x1280",
			Seconds:   4,
			Billable:  4,
		},
		Spec: video.Spec{
			Operation: video.Create,
			Prompt:    prompt,
			Seconds:   4,
			Size:      video.Size{Width: 720, Height: 1280},
		},
		Plan: []catalog.Candidate{
			{Provider: &catalog.Provider{Name: "vendor"}, Model: "sora-2", Price: &catalog.Price{PerSecond: second}},
		},
	}
}

func (p *process) create(o *videojob.Request) work.Video {
	p.t.Helper()
	v, _, err := p.svc.Create(p.t.Context(), o)
	if err != nil {
		p.t.Fatalf("create: %v", err)
	}
	return v
}

func (p *process) look(id string) work.Video {
	p.t.Helper()
	v, ok := work.FindAnyVideo(p.state.View(), id)
	if !ok {
		p.t.Fatalf("there is no %s", id)
	}
	return v
}

// checkCharge checks the charge, and that nothing is held.
func (p *process) checkCharge(charged int64) {
	p.t.Helper()
	b, err := p.ledger.Balance(context.Background(), "7")
	if err != nil || b.Spent != charged || b.Held != 0 {
		p.t.Errorf("spent %d, held %d, want %d and none; %v", b.Spent, b.Held, charged, err)
	}
	if held := money.ListHolds(p.state.View(), ""); len(held) != 0 {
		p.t.Errorf("open holds: %+v", held)
	}
}

// made returns the number of videos that the vendor has rendered.
func (v *vendor) made() (n int) {
	for _, c := range v.engine.Counts() {
		if c.Submissions > 0 {
			n++
		}
	}
	return n
}

func contains(op journal.Op, table journal.Table, what string) bool {
	return op.Table == table && op.Kind == journal.Put && strings.Contains(string(op.Value), what)
}
