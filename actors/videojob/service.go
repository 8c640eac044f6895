package videojob

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/flow"
	"stagedoor/actors/kit"
	"stagedoor/actors/ledger"
	"stagedoor/actors/recording"
	"stagedoor/actors/telemetry"
	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
	"stagedoor/state"
	"stagedoor/state/blobs"
	"stagedoor/state/money"
	"stagedoor/state/share"
	"stagedoor/state/work"
)

// Provider has the parts of a provider that the jobs use.
type Provider struct {
	Limiter *throttle.Client
	Video   video.Upstream // nil if it makes no videos
	// Unrecorded returns what no recording may have of the provider. It may be nil.
	Unrecorded func() []string
	// Judge returns how the limiter counts a failed call for a model. The refusal of one key does not count while
	// another key can be used. If Judge is nil, only the class of the failure counts.
	Judge func(f *upstream.Failure, model string, now time.Time) (throttle.Kind, time.Duration)
}

// Config sets the times of jobs.
type Config struct {
	// Deadline is the longest time of a job from its creation. 0 means 30 minutes.
	Deadline time.Duration
	// Keep is the time for which the record of a finished job stays after its content has expired. 0 means 30
	// days.
	Keep time.Duration
	// Wait is the time for which Create waits for the provider to accept a job. 0 means 15 s.
	Wait time.Duration
	// Most is the number of jobs in flight. 0 means 4096.
	Most int
	// Kept is the number of jobs of one owner whose records are kept, with those that have ended. 0 means 10,000.
	Kept int
}

// filled returns the configuration with the defaults in place of zeros.
func (c Config) filled() Config {
	c.Deadline = orElse(c.Deadline, 30*time.Minute)
	c.Keep = orElse(c.Keep, 30*24*time.Hour)
	c.Wait = orElse(c.Wait, 15*time.Second)
	c.Most = orElse(c.Most, 4096)
	c.Kept = orElse(c.Kept, 10_000)
	return c
}

// orElse returns v, or standard if v is not positive.
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
	// Providers returns a provider of the current configuration, or false.
	Providers func(name string) (Provider, bool)
	// Flow, if not nil, shows jobs in flight to administrators.
	Flow *flow.Registry
	// Files keeps uploads until the submission.
	Files  *blobs.Store
	Config Config
}

// Service makes videos. It is safe for concurrent use.
type Service struct {
	Options
	parent    *actor.PID
	live      atomic.Int64 // number of actors, set by the parent
	slots     *slots
	telemetry atomic.Pointer[telemetry.Telemetry]
	making    sync.Map // by owner and idempotency key, a channel that is closed when the job was made
}

// New starts the service and continues the jobs of earlier processes.
func New(o Options) (*Service, error) {
	o.Config = o.Config.filled()
	s := &Service{Options: o, slots: newSlots(int64(o.Config.Most))}
	var jobs []work.Video
	var err error
	if o.State.Several() { // a process that is alone works on all jobs, and needs no record that says so
		ended, failed := o.State.Ended(context.Background(), work.Nodes)
		if failed == nil {
			jobs, failed = work.TakeOverVideos(context.Background(), o.State, ended)
		}
		if failed != nil {
			return nil, failed
		}
	}
	props := o.System.Props("videos", func() actor.Actor { return &parent{svc: s} },
		kit.WithSupervisor(restartAlways(o.System)))
	if s.parent, err = o.System.SpawnUnique(props, "videos"); err != nil {
		return nil, err
	}
	if len(jobs) > 0 {
		o.System.Logger().Info("video jobs of a process that has ended were taken over", "count", len(jobs))
	}
	// A job that is created during the search for earlier ones would be taken for one of them.
	_, err = kit.Ask(context.Background(), o.System, s.parent, &adopting{})
	return s, err
}

// TakeOver continues the jobs of processes that have ended. One of several processes calls it whenever another one may
// have ended, with the result of State.Ended. The jobs that were taken over before an error are continued all the same,
// because the state already names this process for them.
func (s *Service) TakeOver(ctx context.Context, ended func(state.Node) bool) error {
	jobs, err := work.TakeOverVideos(ctx, s.State, ended)
	if len(jobs) > 0 { // some may be this process's now in spite of an error
		_, failed := kit.Ask(context.WithoutCancel(ctx), s.System, s.parent, &adopting{jobs: jobs})
		err = errors.Join(err, failed)
	}
	return err
}

// takenOver reports whether another process works on a job.
func (s *Service) takenOver(v *work.Video) bool {
	return s.State.Several() && !v.Final() && v.Node != s.State.Node()
}

// Keeps reports whether a hold belongs to a job that has not ended, so that ledger.Recover must not end it.
func Keeps(view state.View, h *money.Hold) bool {
	v, ok := work.FindAnyVideo(view, h.Receipt.Request)
	return ok && !v.Final() && v.Account == h.Account
}

// Request is a client's request for a job.
type Request struct {
	// Video has the owner and the wishes of the client: Owner, Key, Account, Operation, Model, Prompt, Size,
	// Seconds, RemixedFrom, Extensions, Billable, Files, Once and Asked. Create fills in the rest.
	Video work.Video
	// Spec is the request to the provider without the model.
	Spec video.Spec
	// Plan has the candidates. The first one that can do the job is used.
	Plan []catalog.Candidate
}

// Refusals of a client's idempotency key.
var (
	errOnce  = errors.New("the key was used for another job")
	errSwept = errors.New("the key was used for a job whose record is gone")
)

// Create starts a job. It returns when the provider has accepted the job or refused it, or after Config.Wait. The job
// continues in the last case, and if ctx ends. A refusal is the error and leaves no job. If there is no room for the
// job, the error is a *share.Refused. again is set if the client started this job before under the same key.
func (s *Service) Create(ctx context.Context, o *Request) (v work.Video, again bool, err error) {
	if v, again, err = s.record(ctx, o); err != nil || again {
		return v, again, err
	}
	return s.startJob(ctx, v)
}

// record makes the record of a job unless it exists.
func (s *Service) record(ctx context.Context, o *Request) (v work.Video, again bool, err error) {
	leave, err := s.lockKey(ctx, &o.Video)
	if err != nil {
		return v, false, err
	}
	defer leave()
	if v, again, err = s.findByKey(s.State.View(), &o.Video); again || err != nil {
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

// lockKey lets one request at a time make a job under an idempotency key of a client. Without it, the second of two
// parallel requests would need money for a job that it will not get.
func (s *Service) lockKey(ctx context.Context, v *work.Video) (leave func(), err error) {
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

// findByKey returns the job that the same request started under the same idempotency key, or false if v has no key or
// the key is new. It returns errOnce if another request used the key, and errSwept if the job's record is gone.
func (s *Service) findByKey(view state.View, v *work.Video) (work.Video, bool, error) {
	if v.Once == "" {
		return work.Video{}, false, nil
	}
	before, ok := work.FindVideoByOnce(view, v.Owner, v.Once)
	switch {
	case !ok:
		if key, gone := work.FindVideoKey(view, v.Owner, v.Once); gone && key.Asked.Equal(v.Asked) {
			return work.Video{}, false, errSwept
		} else if gone {
			return work.Video{}, false, errOnce
		}
		return work.Video{}, false, nil
	case !before.Asked.Equal(v.Asked):
		return work.Video{}, false, errOnce
	}
	return before, true, nil
}

// onceRefusal returns the client's error for a key that cannot be used.
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

// prepare chooses the candidate and returns the record of the new job, with the amount that must be held for it.
func (s *Service) prepare(o *Request) (work.Video, error) {
	v := o.Video
	c, err := s.choose(o)
	if err != nil {
		return v, err
	}
	if v.ID, err = state.NewID("video_", s.Now(), rand.Reader); err != nil {
		return v, dialogue.Internal(err)
	}
	o.Spec.Model = c.Model
	if v.Spec, err = json.Marshal(&o.Spec); err != nil {
		return v, dialogue.Internal(err)
	}
	v.Provider, v.UpstreamModel, v.Phase = c.Provider.Name, c.Model, work.VideoAccepted
	v.Created = s.Now()
	v.Deadline = v.Created.Add(s.Config.Deadline)
	if price, amount := priceOf(c, v.Billable, v.Created); v.Account != "" && amount > 0 {
		v.Price, v.Held = price, amount
	} else {
		v.Account = ""
	}
	return v, nil
}

// priceOf returns what a second costs at a candidate, and what a number of seconds costs, in micro-dollars.
func priceOf(c *catalog.Candidate, seconds int64, now time.Time) (perSecond, amount int64) {
	price := c.Rates(now)
	amount = ledger.Video(price, ledger.VideoLength{Asked: seconds}).Amount
	if amount > 0 {
		perSecond = price.PerSecond
	}
	return perSecond, amount
}

// Price returns what Create would hold now for a job of a number of seconds at the candidate that it would choose from
// the plan. The error is that of Create.
func (s *Service) Price(plan []catalog.Candidate, op video.Operation, seconds int64) (int64, error) {
	c, err := s.choose(&Request{Plan: plan, Spec: video.Spec{Operation: op}})
	if err != nil {
		return 0, err
	}
	_, amount := priceOf(c, seconds, s.Now())
	return amount, nil
}

// AtProvider returns the candidates at the provider that made a video, which alone can change or extend it. The error
// is for the client.
func AtProvider(plan []catalog.Candidate, provider string) ([]catalog.Candidate, error) {
	plan = slices.DeleteFunc(slices.Clone(plan),
		func(c catalog.Candidate) bool { return c.Provider.Name != provider })
	if len(plan) == 0 {
		return nil, dialogue.NoProvider(
			"the provider that made the video is not available at the moment, try again later", time.Second, nil)
	}
	return plan, nil
}

// choose returns the first candidate whose provider can do the job. A job is submitted to one candidate only, so
// entries that are for failures of others are not used.
func (s *Service) choose(o *Request) (*catalog.Candidate, error) {
	reachable := false
	for i := range o.Plan {
		p, ok := s.Providers(o.Plan[i].Provider.Name)
		if !ok || p.Video == nil || o.Plan[i].On != 0 {
			continue
		}
		if reachable = true; p.Video.Supports(o.Spec.Operation) {
			return &o.Plan[i], nil
		}
	}
	if !reachable {
		return nil, dialogue.Invalid("model", "makes no videos here: its provider is of another kind")
	}
	return nil, dialogue.BadField("model", "unsupported_operation",
		"its provider cannot "+string(o.Spec.Operation)+" videos")
}

// accept holds the money and then writes the record. A crash in between leaves a hold without a job, which the next
// start releases.
func (s *Service) accept(ctx context.Context, v work.Video) (kept work.Video, again bool, err error) {
	var hold *ledger.Hold
	if v.Account != "" {
		hold, err = s.Ledger.Hold(ctx, ledger.Ask{Account: v.Account, RequestID: v.ID, Amount: v.Held, Durable: true,
			Key: v.Key, Model: v.Model, Provider: v.Provider})
		if err != nil {
			return v, false, err
		}
	}
	kept, err = state.Do(context.WithoutCancel(ctx), s.State, func(tx *state.Tx) (work.Video, error) {
		before, found, err := s.findByKey(tx.View(), &v)
		if again = found; found || err != nil {
			return before, err
		}
		if work.HasVideos(tx.View(), v.Owner, s.Config.Kept) {
			return v, dialogue.StorageQuota(fmt.Sprintf(
				"%d videos are kept for this user or key, which may keep no more: delete some of them", s.Config.Kept))
		}
		return work.PutVideo(tx, v)
	})
	if hold != nil && (err != nil || again) {
		hold.Release(ledger.Refused.String(), nil)
	}
	var refused *dialogue.Error
	switch {
	case errors.Is(err, errOnce), errors.Is(err, errSwept):
		return v, false, onceRefusal(err)
	case errors.As(err, &refused):
		return v, false, refused
	case err != nil:
		return v, false, dialogue.StorageUnavailable("keep videos", err)
	}
	return kept, again, nil
}

// startJob starts the job's actor and waits for the result of the submission.
func (s *Service) startJob(ctx context.Context, v work.Video) (work.Video, bool, error) {
	r := newRun(v.ID)
	r.draft = recording.From(ctx)
	// The job continues if its client leaves.
	_, err := kit.Ask(context.WithoutCancel(ctx), s.System, s.parent, &startJob{run: r})
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
		return s.awaitReply(r, v)
	}
	if now, ok := work.FindVideo(s.State.View(), v.ID, v.Owner); ok {
		v = now
	}
	return v, false, nil
}

// withdraw marks a job whose actor could not start as failed and deleted. Its client gets an error and may ask again,
// and the next start settles the job. If an adopted actor has continued the job meanwhile, the client gets the job.
func (s *Service) withdraw(v work.Video, cause error) (work.Video, bool, error) {
	_, err := state.Do(context.Background(), s.State, func(tx *state.Tx) (work.Video, error) {
		gone := markFailed(v, "", "", tx.Now())
		gone.Deleted = tx.Now()
		return work.ChangeVideo(tx, &v, gone)
	})
	if now, ok := work.FindVideo(s.State.View(), v.ID, v.Owner); ok && errors.Is(err, work.ErrVideoChanged) {
		return now, false, nil
	}
	s.slots.release(v.ID)
	return v, false, dialogue.ShuttingDown(cause)
}

// awaitReply waits for a reply that the job's actor has claimed. A refusal arrives after its hold
// was released.
func (s *Service) awaitReply(r *run, v work.Video) (work.Video, bool, error) {
	patience := time.NewTimer(s.Config.Wait)
	defer patience.Stop()
	select {
	case a := <-r.answer:
		return a.video, false, a.err
	case <-patience.C:
		return v, false, dialogue.StorageUnavailable("keep videos", nil)
	}
}

// Slots returns the pool of jobs in flight, for metrics.
func (s *Service) Slots() *share.Pool { return s.slots.pool }

// InFlight returns the number of jobs in flight.
func (s *Service) InFlight() int { return int(s.live.Load()) }

// openUpload opens an uploaded file for a submission.
func (s *Service) openUpload(id string) (io.ReadCloser, error) {
	file, _, err := s.Files.Open(blobs.ID(id), s.Now())
	return file, err
}

// noRoute returns the error for a job whose provider cannot be used at the moment.
func noRoute(after time.Duration, cause error) *dialogue.Error {
	return dialogue.NoProvider("the provider of this video is not available at the moment, try again later",
		min(after, upstream.MaxClientRetryAfter), cause)
}
