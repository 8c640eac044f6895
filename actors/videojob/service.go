package videojob

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/flow"
	"stagedoor/actors/kit"
	"stagedoor/actors/ledger"
	"stagedoor/actors/telemetry"
	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
	"stagedoor/state"
	"stagedoor/state/blobs"
	"stagedoor/state/share"
)

// Provider is a provider as far as videos are concerned.
type Provider struct {
	Gate  *throttle.Client
	Video video.Upstream // nil: it makes none
	// Judge says what the gate learns of a failed call for a model: of a refusal of one key
	// nothing while another key can be used. nil: only the failure's class counts.
	Judge func(f *upstream.Failure, model string, now time.Time) (throttle.Kind, time.Duration)
}

// Config are the times of jobs.
type Config struct {
	// Deadline is how long a job may take from its creation on. 0: 30 minutes.
	Deadline time.Duration
	// Keep is how long the record of a job that has ended is kept, after its
	// content has expired. 0: 30 days.
	Keep time.Duration
	// Wait is how long Create waits for the provider to take a job. 0: 15 s.
	Wait time.Duration
	// Most is how many jobs may be under way. 0: 4096.
	Most int
}

func (c Config) filled() Config {
	c.Deadline = orElse(c.Deadline, 30*time.Minute)
	c.Keep = orElse(c.Keep, 30*24*time.Hour)
	c.Wait = orElse(c.Wait, 15*time.Second)
	c.Most = orElse(c.Most, 4096)
	return c
}

func orElse[T int | time.Duration](v, standard T) T {
	if v > 0 {
		return v
	}
	return standard
}

// Options have the parts of the gateway that the service uses.
type Options struct {
	System *kit.System
	State  *state.State
	Ledger *ledger.Client
	Now    func() time.Time
	// Providers finds those of the configuration in force; false: there is none.
	Providers func(name string) (Provider, bool)
	// Flow shows jobs under way to those who look; nil: nobody can.
	Flow *flow.Registry
	// Files are where uploads wait for the submission.
	Files  *blobs.Store
	Config Config
}

// Service makes videos. Safe for concurrent use.
type Service struct {
	Options
	parent    *actor.PID
	live      atomic.Int64 // actors there are; the parent's
	slots     *slots
	telemetry atomic.Pointer[telemetry.Telemetry]
	making    sync.Map // by owner and key, a channel that is closed when the job is made
}

// New starts the service, and goes on with the jobs of earlier processes.
func New(o Options) (*Service, error) {
	o.Config = o.Config.filled()
	s := &Service{Options: o, slots: newSlots(int64(o.Config.Most))}
	var err error
	props := o.System.Props("videos", func() actor.Actor { return &parent{svc: s} }, kit.WithSupervisor(restartAlways(o.System)))
	if s.parent, err = o.System.SpawnUnique(props, "videos"); err != nil {
		return nil, err
	}
	// A job that is created while earlier ones are looked for would be taken for one.
	_, err = kit.Ask(context.Background(), o.System, s.parent, &adopted{})
	return s, err
}

// Keeps claims the holds of jobs that have not ended, for ledger.Recover.
func Keeps(s *state.State) func(state.Hold) bool {
	return func(h state.Hold) bool {
		v, ok := s.View().AnyVideo(h.Receipt.Request)
		return ok && !v.Final() && v.Account == h.Account
	}
}

// Order is a job that a client asks for.
type Order struct {
	// Video says whose it is, what it is called and what is asked for: Owner, Key,
	// Account, Operation, Model, Prompt, Size, Seconds, RemixedFrom, Extensions,
	// Billable, Files, Once and Asked. The rest is filled in.
	Video state.Video
	// Spec is what the provider is asked for, without the model.
	Spec video.Spec
	// Plan are the candidates; the first one that can is taken.
	Plan []catalog.Candidate
}

// Refusals of a client's idempotency key.
var (
	errOnce  = errors.New("the key was used for another job")
	errSwept = errors.New("the key was used for a job whose record is gone")
)

// Create begins a job. It returns when the provider has taken it, has refused it,
// which is the error and leaves no job, or has been silent for a while; the job
// goes on then, as it does when ctx ends. A *share.Refused is the error of a job for
// which there is no room. again tells that the client had begun
// it before under the same key.
func (s *Service) Create(ctx context.Context, o *Order) (v state.Video, again bool, err error) {
	if v, again, err = s.record(ctx, o); err != nil || again {
		return v, again, err
	}
	return s.begin(ctx, v)
}

// record makes the record of a job, unless it was made before.
func (s *Service) record(ctx context.Context, o *Order) (v state.Video, again bool, err error) {
	leave, err := s.enter(ctx, &o.Video)
	if err != nil {
		return v, false, err
	}
	defer leave()
	if v, again, err = s.once(s.State.View(), &o.Video); again || err != nil {
		return v, again, onceRefusal(err)
	}
	v, err = s.prepare(o)
	if err != nil {
		return v, false, err
	}
	v.Traceparent = telemetry.Traceparent(ctx)
	if err := s.slots.take(v.ID, v.Owner); err != nil {
		return v, false, err
	}
	kept, again, err := s.accept(ctx, v)
	if err != nil || again {
		s.slots.release(v.ID)
	}
	return kept, again, err
}

// enter lets one at a time make a job under the same key of a client's: of two
// that come at once the second would need money for a job that it will not get.
func (s *Service) enter(ctx context.Context, v *state.Video) (leave func(), err error) {
	if v.Once == "" {
		return func() {}, nil
	}
	name := string(v.Owner) + "\x00" + v.Once
	mine := make(chan struct{})
	for {
		before, busy := s.making.LoadOrStore(name, mine)
		if !busy {
			return func() { s.making.Delete(name); close(mine) }, nil
		}
		select {
		case <-before.(chan struct{}):
		case <-ctx.Done():
			return nil, upstream.CancelledBy(context.Cause(ctx)).Err
		}
	}
}

// once finds the job that was begun under the same key.
func (s *Service) once(view state.View, v *state.Video) (state.Video, bool, error) {
	if v.Once == "" {
		return state.Video{}, false, nil
	}
	before, ok := view.VideoByOnce(v.Owner, v.Once)
	switch {
	case !ok:
		if key, gone := view.VideoKey(v.Owner, v.Once); gone && key.Asked.Equal(v.Asked) {
			return state.Video{}, false, errSwept
		} else if gone {
			return state.Video{}, false, errOnce
		}
		return state.Video{}, false, nil
	case !before.Asked.Equal(v.Asked):
		return state.Video{}, false, errOnce
	}
	return before, true, nil
}

func onceRefusal(err error) error {
	if errors.Is(err, errOnce) {
		return dialogue.IdempotencyKeyReused("was used for another request")
	}
	if errors.Is(err, errSwept) {
		return dialogue.IdempotencyKeyReused("was used for this request before, and the video is not kept any more: " +
			"send another key to make a new video")
	}
	return err
}

// prepare chooses the provider and fills in the record.
func (s *Service) prepare(o *Order) (state.Video, error) {
	v := o.Video
	c, err := s.choose(o)
	if err != nil {
		return v, err
	}
	if v.ID, err = state.NewID("video_", s.Now(), rand.Reader); err != nil {
		return v, internal(err)
	}
	o.Spec.Model = c.Model
	if v.Spec, err = json.Marshal(&o.Spec); err != nil {
		return v, internal(err)
	}
	v.Provider, v.UpstreamModel, v.Phase = c.Provider.Name, c.Model, state.VideoAccepted
	v.Created = s.Now()
	v.Deadline = v.Created.Add(s.Config.Deadline)
	if bill := ledger.Video(c.Price, ledger.VideoLength{Asked: v.Billable}); v.Account != "" && bill.Amount > 0 {
		v.Price, v.Held = c.Price.PerSecond, bill.Amount
	} else {
		v.Account = ""
	}
	return v, nil
}

// choose takes the first candidate whose provider can do what is asked for.
func (s *Service) choose(o *Order) (*catalog.Candidate, error) {
	reachable := false
	for i := range o.Plan {
		p, ok := s.Providers(o.Plan[i].Provider.Name)
		if !ok || p.Video == nil {
			continue
		}
		if reachable = true; p.Video.Supports(o.Spec.Operation) {
			return &o.Plan[i], nil
		}
	}
	if !reachable {
		return nil, dialogue.Invalid("model", "makes no videos here: its provider is of another kind")
	}
	return nil, dialogue.BadField("model", "unsupported_operation", "its provider cannot "+string(o.Spec.Operation)+" videos")
}

// accept holds the money and then keeps the record. A crash in between leaves a
// hold without a job, which the next start releases.
func (s *Service) accept(ctx context.Context, v state.Video) (kept state.Video, again bool, err error) {
	var hold *ledger.Hold
	if v.Account != "" {
		hold, err = s.Ledger.Hold(ctx, ledger.Ask{Account: v.Account, RequestID: v.ID, Amount: v.Held, Durable: true,
			Key: v.Key, Model: v.Model, Provider: v.Provider})
		if err != nil {
			return v, false, err
		}
	}
	kept, err = state.Do(context.WithoutCancel(ctx), s.State, func(tx *state.Tx) (state.Video, error) {
		before, found, err := s.once(tx.View(), &v)
		if again = found; found || err != nil {
			return before, err
		}
		return tx.PutVideo(v)
	})
	if hold != nil && (err != nil || again) {
		hold.Release(ledger.Refused.String(), nil)
	}
	switch {
	case errors.Is(err, errOnce), errors.Is(err, errSwept):
		return v, false, onceRefusal(err)
	case err != nil:
		return v, false, unavailable(err)
	}
	return kept, again, nil
}

// begin has the job's actor spawned and waits for what becomes of the submission.
func (s *Service) begin(ctx context.Context, v state.Video) (state.Video, bool, error) {
	r := newRun(v.ID)
	// Whoever leaves does not take the job along.
	_, err := kit.Ask(context.WithoutCancel(ctx), s.System, s.parent, &begin{run: r})
	if err != nil {
		return s.withdraw(v, err)
	}
	patience := time.NewTimer(s.Config.Wait)
	defer patience.Stop()
	select {
	case a := <-r.answer:
		return a.video, false, a.err
	case <-ctx.Done():
	case <-patience.C:
	}
	if !r.claim() {
		return s.decided(r, v)
	}
	if now, ok := s.State.View().Video(v.ID, v.Owner); ok {
		v = now
	}
	return v, false, nil
}

// withdraw takes back a job whose actor could not begin: its client is told so and
// asks again. The next start settles it. One that is gone on with all the same, by an
// actor that was adopted meanwhile, is the client's.
func (s *Service) withdraw(v state.Video, cause error) (state.Video, bool, error) {
	_, err := state.Do(context.Background(), s.State, func(tx *state.Tx) (state.Video, error) {
		now, ok := tx.View().AnyVideo(v.ID)
		if !ok || now.Phase != v.Phase || now.Attempts != v.Attempts {
			return now, errStale
		}
		gone := failed(now, "", "", tx.Now())
		gone.Deleted = tx.Now()
		return tx.PutVideo(gone)
	})
	if now, ok := s.State.View().Video(v.ID, v.Owner); ok && errors.Is(err, errStale) {
		return now, false, nil
	}
	s.slots.release(v.ID)
	return v, false, shuttingDown(cause)
}

// decided waits for an answer that is on its way: a refusal is told when its money
// is back.
func (s *Service) decided(r *run, v state.Video) (state.Video, bool, error) {
	patience := time.NewTimer(s.Config.Wait)
	defer patience.Stop()
	select {
	case a := <-r.answer:
		return a.video, false, a.err
	case <-patience.C:
		return v, false, unavailable(nil)
	}
}

// Slots returns the pool of jobs under way, for metrics.
func (s *Service) Slots() *share.Pool { return s.slots.pool }

// InFlight is how many jobs are under way.
func (s *Service) InFlight() int { return int(s.live.Load()) }

// open opens an upload for a submission.
func (s *Service) open(id string) (io.ReadCloser, error) {
	file, _, err := s.Files.Open(blobs.ID(id), s.Now())
	return file, err
}

func internal(cause error) *dialogue.Error {
	return dialogue.Internal(cause)
}

func unavailable(cause error) *dialogue.Error {
	return dialogue.StorageUnavailable("keep videos", cause)
}

func noRoute(after time.Duration, cause error) *dialogue.Error {
	return dialogue.NoProvider("the provider of this video is not available at the moment, try again later",
		min(after, upstream.MaxClientRetryAfter), cause)
}

func shuttingDown(cause error) *dialogue.Error {
	e := *upstream.CancelledBy(upstream.ErrDraining).Err
	e.Cause = cause
	return &e
}
