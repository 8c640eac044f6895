package background

import (
	"context"
	"errors"
	"fmt"

	"github.com/sourcegraph/conc/pool"

	"stagedoor/actors/text"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/responses"
	"stagedoor/state"
	"stagedoor/state/work"
)

// Again makes the request of a response again from what was kept with it,
// as Job.Request is. An error is what the response fails with.
type Again func(ctx context.Context, id string, request []byte) (*text.Request, error)

// abreast is how many responses are settled at once, so that the store writes
// them together.
const abreast = 64

// Resume goes on with the responses whose work ended with an earlier process:
// each is begun again from its request, or fails if that cannot be. Those whose
// clients read them fail: their connections are gone. It runs once, before
// anything is served. That a run began is durable before it begins, so that
// however processes end, no response is begun more than maxTries times, and
// never twice at once.
func (g *Registry) Resume(ctx context.Context, again Again) (resumed, failed int, err error) {
	left := work.ListResponses(g.store.View(), work.ResponseFilter{Unfinished: true})
	if failed, err = g.failRead(ctx, left); err != nil {
		return 0, failed, err
	}
	for _, h := range left {
		if !h.Background {
			continue
		}
		r, err := work.ReadResponse(ctx, g.store, h.ID, h.Owner)
		if errors.Is(err, state.ErrNotFound) {
			continue // it expired just now
		}
		if err != nil {
			return resumed, failed, fmt.Errorf("resume response %s: %w", h.ID, err)
		}
		run, cause := g.restore(ctx, &r, again)
		if cause == nil && g.begin(run) == nil {
			resumed++
			continue
		}
		failed++
		if cause == nil {
			g.forget(run) // begin has settled it
			continue
		}
		if err := g.fail(&r, cause); err != nil {
			return resumed, failed, fmt.Errorf("settle response %s: %w", h.ID, err)
		}
	}
	return resumed, failed, nil
}

var errRestarted = dialogue.ServerError("the gateway was restarted while the response was under way", nil)

// failRead settles the responses whose clients were reading them.
func (g *Registry) failRead(ctx context.Context, left []work.ResponseHeader) (failed int, err error) {
	p := pool.New().WithErrors().WithContext(ctx).WithFirstError().WithMaxGoroutines(abreast)
	for _, h := range left {
		if h.Background {
			continue
		}
		failed++
		p.Go(func(ctx context.Context) error {
			r, err := work.ReadResponse(ctx, g.store, h.ID, h.Owner)
			if err == nil {
				err = g.fail(&r, errRestarted)
			}
			if err != nil && !errors.Is(err, state.ErrNotFound) { // it expired just now
				return fmt.Errorf("settle response %s: %w", h.ID, err)
			}
			return nil
		})
	}
	return failed, p.Wait()
}

// restore makes another run of a stored response.
func (g *Registry) restore(ctx context.Context, r *work.StoredResponse, again Again) (*run, error) {
	job := Job{ID: r.ID, Owner: r.Owner, Queued: r.Body, Streamed: r.Streamed, run: r.Runs + 1}
	if r.RequestSize == 0 || job.run > maxTries {
		return nil, errRestarted
	}
	var err error
	if job.Kept, err = work.ReadResponseRequest(ctx, g.store, r.ID, r.Owner); err != nil {
		return nil, errRestarted
	}
	if job.Request, err = again(ctx, r.ID, job.Kept); err != nil {
		return nil, err
	}
	if r.Conversation != "" {
		if job.Turn, err = work.BeginTurn(g.store, r.Conversation, r.Owner); err != nil {
			return nil, errRestarted
		}
		job.Input = r.Input
	}
	run := newRun(job, g.requests.Memory())
	g.slots.Adopt(string(run.job.Owner), 1)
	g.enter(run)
	run.memory.Adopt(job.size())
	if _, err = work.UpdateResponse(ctx, g.store, r.ID, r.Owner, work.ResponseUpdate{Run: true}); err != nil {
		g.forget(run)
		return nil, errRestarted
	}
	return run, nil
}

// fail settles a response that cannot go on. Its event is numbered beyond those
// that were sent and not kept, so that a client that resumes gets it; only the streams
// of background responses can be resumed.
func (g *Registry) fail(r *work.StoredResponse, cause error) error {
	var failure *dialogue.Error
	if !errors.As(cause, &failure) {
		failure = dialogue.ServerError(errCrashed, cause)
	}
	body := responses.Failed(r.Body, failure)
	number := int64(max(r.Runs, 1)) * maxLog
	var log []byte
	if r.Streamed && r.Background {
		log = failedEvent(body, number)
	}
	return g.update(r.ID, r.Owner, body, log, number, nil)
}
