package videojob

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"stagedoor/actors/ledger"
	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
	"stagedoor/state"
	"stagedoor/state/blobs"
	"stagedoor/state/money"
	"stagedoor/state/work"
)

// Limits of the times that a step waits.
const (
	submitTime  = 2 * time.Minute // includes an upload
	pollTime    = 30 * time.Second
	limiterTime = time.Minute // in the provider's queue
	storeWait   = 2 * time.Second
	stopGrace   = 10 * time.Second // for a submission when the gateway stops
)

// mostMisses is the number of polls in a row after which an unknown job is lost. Some providers know a new job only
// after a while.
const mostMisses = 3

// step executes one action of a job. It runs on a goroutine of its own. It owns its copies of the record, and
// hands the result to the actor in out. base is the record as the store last had it, with which ChangeVideo
// compares; video is what it shall become.
type step struct {
	svc   *Service
	run   *run
	base  work.Video // the content of the record
	video work.Video
	// As in job.
	unsaved, hanging bool
	misses           int

	out stepped
}

// perform executes the step and returns a *stepped for the actor.
func (s *step) perform(ctx context.Context) any {
	s.runTraced(ctx, s.act)
	s.out.base, s.out.video, s.out.unsaved = s.base, s.video, s.unsaved
	s.out.misses = s.misses
	return &s.out
}

// act executes the action that the job needs now.
//
// A record that could not be written comes before everything else, because the next action depends on it.
// hanging is set for a job that another process may have been submitting when it ended: recoverJob decides
// whether it may be submitted again, which is safe only at a provider that knows idempotency keys.
func (s *step) act(ctx context.Context) {
	if s.unsaved {
		s.save()
		return
	}
	if nextAction(&s.video) != settle && s.run.ended.Err() != nil {
		s.endByOperator()
		return
	}
	now := s.svc.Now()
	if s.hanging {
		p, ok := s.svc.Providers(s.video.Provider)
		if s.video.Phase == work.VideoSubmitting && (!ok || p.Video == nil) && now.Before(s.video.Deadline) {
			s.out.again, s.out.hanging = firstWait, true // it is not known yet which action is safe
			return
		}
		if v := recoverJob(s.video, ok && p.Video != nil && p.Video.Idempotent(), now); v.Phase != s.video.Phase {
			s.change(v)
		}
	}
	what := nextAction(&s.video)
	switch {
	case what == settle:
		s.settle(ctx)
	case !now.Before(s.video.Deadline):
		s.change(failLate(s.video, now))
	case what == submit:
		s.submit(ctx)
	case what == poll:
		s.poll(ctx)
	}
	if s.unsaved {
		s.save()
	}
}

// change sets the job that the record is to have.
func (s *step) change(v work.Video) {
	s.video, s.unsaved = v, true
}

// save writes the record, unless another actor has changed it. Then two incarnations of the job's actor run, and this
// step belongs to the older one.
func (s *step) save() {
	kept, err := state.Do(context.Background(), s.svc.State, func(tx *state.Tx) (work.Video, error) {
		return work.ChangeVideo(tx, &s.base, s.video)
	})
	switch {
	case err == nil:
		s.video, s.base, s.unsaved = kept, kept, false
	case errors.Is(err, state.ErrUnavailable):
		s.out.again = storeWait
	case errors.Is(err, work.ErrVideoChanged), errors.Is(err, state.ErrFinished), errors.Is(err, state.ErrInvalid):
		s.out.stale = true
	default:
		s.svc.System.Logger().Error("video job not written", "video", s.base.ID, "cause", err)
		s.out.again = longestWait
	}
}

// provider returns the job's provider of the current configuration.
func (s *step) provider() (Provider, bool) {
	p, ok := s.svc.Providers(s.video.Provider)
	if !ok || p.Video == nil {
		s.out.again = firstWait // a later configuration may have the provider again
		return p, false
	}
	return p, true
}

// permit waits for a permit of the provider's limiter. A job that is refused one tries again later.
func (s *step) permit(ctx context.Context, p Provider, class int) *throttle.Permit {
	now := s.svc.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.run.ended, cancel)() // a job that an operator ended leaves the queue
	ask := throttle.Ask{Owner: string(s.video.Owner), Class: class, Deadline: now.Add(limiterTime), Last: true}
	if nextAction(&s.video) == submit {
		ask.ID = s.video.ID // shows the place in the queue; the place of a poll is not shown
		ask.Model = s.video.UpstreamModel
	}
	permit, err := p.Limiter.Acquire(ctx, ask)
	if err == nil {
		return permit
	}
	s.out.again = longestWait
	var refused *throttle.Refused
	if errors.As(err, &refused) {
		s.out.again = min(max(refused.RetryAfter, firstWait), longestRetry)
	}
	return nil
}

// submit sends the job to the provider after the record says so. The order keeps a job from being made twice:
// permit, record with the phase submitting, call, record with the provider's id. A crash between the last
// three leaves a record that says that the provider may have the job.
func (s *step) submit(ctx context.Context) {
	p, ok := s.provider()
	if !ok {
		return
	}
	var spec video.Spec
	if err := json.Unmarshal(s.video.Spec, &spec); err != nil {
		s.change(markFailed(s.video, "", "", s.svc.Now()))
		return
	}
	permit := s.permit(ctx, p, throttle.Normal)
	if permit == nil {
		return
	}
	defer permit.Release(throttle.Outcome{Kind: throttle.Unused}) // does nothing after a release with an outcome
	s.change(markSubmitting(s.video))
	if s.save(); s.unsaved {
		// The provider was not called. The record must be written again before it is.
		s.video, s.unsaved = s.base, false
		return
	}
	id, status, err := s.send(ctx, p, &spec)
	outcome := p.outcome(err, s.video.UpstreamModel, s.svc.Now())
	permit.Release(outcome)
	if err == nil {
		s.discard(s.video.Files)
		s.change(markAccepted(s.video, id, status, s.svc.Now()))
		s.out.asked = status.PollAfter
		return
	}
	s.handleRefusal(ctx, p, err, outcome)
}

// send submits the job. A gateway that stops lets the submission end within stopGrace, because after half a submission
// it is unknown whether the video is made.
func (s *step) send(ctx context.Context, p Provider, spec *video.Spec) (string, video.Status, error) {
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(stopGrace, cancel) })
	defer stop()
	if d := s.run.draft; d != nil {
		d.Try(s.video.Provider, s.video.UpstreamModel, false, p.Unrecorded())
		detached = upstream.WithObserver(detached, d)
	}
	id, status, err := p.Video.Submit(upstream.WithOwner(detached, string(s.video.Owner)), s.video.ID, spec,
		s.svc.openUpload)
	if err == nil && id == "" {
		err = dialogue.BadUpstream("a video without an id")
	}
	return id, status, err
}

// handleRefusal repeats or ends a job whose submission failed.
func (s *step) handleRefusal(ctx context.Context, p Provider, err error, o throttle.Outcome) {
	r := decideRefusal(err, p.Video.Idempotent(), s.video.Attempts, o)
	switch {
	case r.again && r.reached:
		s.out.again = r.wait
	case r.again:
		s.change(markNotSubmitted(s.video))
		s.out.again = r.wait
	case ctx.Err() != nil:
		// The gateway stops, and the next process decides.
		s.out.again = longestWait
	default:
		s.fail(r.err)
	}
}

// fail ends a job that was not accepted. A client that still waits gets the error and has no job.
func (s *step) fail(e *dialogue.Error) {
	now := s.svc.Now()
	v := markFailed(s.video, codeOf(e), e.Message, now)
	s.discard(s.video.Files)
	if s.run.claim() {
		v.Deleted = now
		s.out.err = e
	}
	s.change(v)
}

// discard removes uploads that are not needed any more. Those that cannot be removed expire.
func (s *step) discard(files []string) {
	for _, id := range files {
		if err := s.svc.Files.Delete(blobs.ID(id)); err != nil {
			s.svc.System.Logger().Warn("upload not removed", "video", s.base.ID, "cause", err)
		}
	}
}

// poll asks the provider for the status. A failed poll changes nothing, because the provider may still finish
// the job. An unknown job is a success for the limiter, because the provider has answered. It is lost after
// mostMisses such answers in a row.
func (s *step) poll(ctx context.Context) {
	p, ok := s.provider()
	if !ok {
		return
	}
	permit := s.permit(ctx, p, throttle.Background)
	if permit == nil {
		return
	}
	defer permit.Release(throttle.Outcome{Kind: throttle.Unused}) // as in submit
	limited, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	status, err := p.Video.Poll(upstream.WithOwner(limited, string(s.video.Owner)), s.video.UpstreamID)
	if errors.Is(err, video.ErrJobNotFound) {
		permit.Release(throttle.Outcome{Kind: throttle.Success})
		if s.misses++; s.misses >= mostMisses {
			s.change(failLost(s.video, s.svc.Now()))
		}
		return
	}
	s.misses = 0
	outcome := p.outcome(err, "", s.svc.Now())
	permit.Release(outcome)
	if err != nil {
		s.out.asked = outcome.RetryAfter
		return
	}
	s.out.asked = status.PollAfter
	if v := applyStatus(s.video, status, s.svc.Now()); v.Phase != s.video.Phase || v.Progress != s.video.Progress {
		s.change(v)
	}
}

// settle settles the hold and then writes the record. After a crash in between there is no hold, which means that it
// was settled.
func (s *step) settle(ctx context.Context) {
	cost, err := s.pay(ctx)
	if err != nil {
		s.svc.System.Logger().Warn("video job not settled yet", "video", s.base.ID, "cause", err)
		s.out.again = storeWait
		return
	}
	s.change(markSettled(s.video, cost, s.svc.Now(), s.svc.Config.Keep))
}

// pay settles or releases the job's hold and returns what was charged. Without an account nothing is charged,
// and only the usage is counted. A hold that the ledger does not have any more was settled before a crash, so
// its amount is the result and nothing is charged again.
func (s *step) pay(ctx context.Context) (cost int64, err error) {
	v := &s.video
	if v.Account == "" {
		row := money.UsageRow{Account: v.Owner.Account(), Key: v.Key, Model: v.Model, Requests: 1}
		if v.Error == nil {
			row.Seconds = ledger.Video(nil, lengthOf(v)).Usage.Seconds
		}
		if s.svc.Ledger != nil {
			s.svc.Ledger.CountUsage(row)
		}
		return 0, nil
	}
	bill := ledger.Video(&catalog.Price{PerSecond: v.Price}, lengthOf(v))
	if v.Error != nil {
		bill.Amount = 0
	}
	hold, err := s.svc.Ledger.Resume(ctx, v.Account, v.ID)
	if errors.Is(err, state.ErrNotFound) {
		return bill.Amount, nil
	}
	if err != nil {
		return 0, err
	}
	receipt := &money.Receipt{Model: v.Model, Upstream: v.UpstreamModel, Provider: v.Provider, Attempts: v.Attempts}
	if v.Error != nil {
		hold.Release(ledger.Failed.String(), receipt)
		return 0, nil
	}
	receipt.Usage, receipt.Prices, receipt.Flags = bill.Usage, bill.Prices, bill.Flags
	return bill.Amount, hold.Settle(ctx,
		ledger.Settlement{Amount: bill.Amount, Reason: ledger.Finished.String(), Receipt: receipt})
}

// outcome returns the outcome of one call for the limiter.
func (p *Provider) outcome(err error, model string, now time.Time) throttle.Outcome {
	if err == nil {
		return throttle.Outcome{Kind: throttle.Success}
	}
	f := failure(err)
	if p.Judge != nil {
		kind, wait := p.Judge(f, model, now)
		return throttle.Outcome{Kind: kind, RetryAfter: wait}
	}
	if f.TooLarge { // the failure says nothing about other requests
		return throttle.Outcome{Kind: throttle.CallerFault}
	}
	return throttle.Outcome{Kind: throttle.KindOf(f.Class), RetryAfter: f.RetryAfter}
}
