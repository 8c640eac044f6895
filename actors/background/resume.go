package background

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sourcegraph/conc/pool"

	"stagedoor/actors/text"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/responses"
	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/work"
)

// RestoreRequest makes the request of a response from what was stored as Job.Kept. If it returns an
// error, the response fails with it.
type RestoreRequest func(ctx context.Context, id string, request []byte) (*text.Request, error)

// parallelSettles is the number of responses that are settled concurrently, so that the store can
// commit them together.
const parallelSettles = 64

// Resume continues the responses whose work was interrupted by the end of an earlier process. Each
// is started again from its request, or fails if it cannot be. Responses whose clients were reading
// them fail, because the connections are gone. A process that is alone calls it once, before requests
// are served, and one of several whenever another one may have ended. ended is the result of
// State.Ended. The start of a run is durable before the run starts, so no response is started more
// than maxTries times, and never twice at once, however processes end. An error says that the store cannot be used now:
// the responses that are left stay as they are, for another call.
func (g *Registry) Resume(ctx context.Context, ended func(state.Node) bool,
	restore RestoreRequest) (resumed, failed int, err error) {
	left := slices.DeleteFunc(work.ListResponses(g.store.View(), work.ResponseFilter{Unfinished: true}),
		func(h work.ResponseHeader) bool { return !ended(h.Node) })
	if failed, err = g.failForeground(ctx, left, ended); err != nil {
		return 0, failed, err
	}
	for _, h := range left {
		if !h.Background {
			continue
		}
		if err := ctx.Err(); err != nil {
			return resumed, failed, err
		}
		r, err := work.ReadResponse(ctx, g.store, h.ID, h.Owner)
		if errors.Is(err, state.ErrNotFound) {
			continue // it has expired meanwhile
		}
		if err != nil {
			return resumed, failed, fmt.Errorf("resume response %s: %w", h.ID, err)
		}
		run, cause := g.restoreRun(ctx, &r, ended, restore)
		switch {
		case errors.Is(cause, work.ErrTaken):
			continue // another process was first
		case errors.Is(cause, work.ErrConversationInUse) && g.store.Several():
			continue // the next call may find it free
		case passing(cause):
			return resumed, failed, fmt.Errorf("resume response %s: %w", h.ID, cause)
		}
		if cause == nil && g.startRun(run) == nil {
			resumed++
			continue
		}
		failed++
		if cause == nil {
			g.removeRun(run) // startRun has stored the failure
			continue
		}
		if err := g.failResponse(&r, ended, cause); err != nil {
			return resumed, failed, fmt.Errorf("settle response %s: %w", h.ID, err)
		}
	}
	return resumed, failed, nil
}

// passing reports whether an error is one of the store or of ctx, so that it says nothing about a response.
func passing(err error) bool {
	return errors.Is(err, state.ErrUnavailable) || errors.Is(err, journal.ErrUnreachable) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

var errRestarted = dialogue.ServerError("the gateway was restarted while the response was in progress", nil)

// failForeground fails the responses whose clients were reading them.
func (g *Registry) failForeground(ctx context.Context, left []work.ResponseHeader,
	ended func(state.Node) bool) (failed int, err error) {
	p := pool.New().WithErrors().WithContext(ctx).WithFirstError().WithMaxGoroutines(parallelSettles)
	for _, h := range left {
		if h.Background {
			continue
		}
		failed++
		p.Go(func(ctx context.Context) error {
			r, err := work.ReadResponse(ctx, g.store, h.ID, h.Owner)
			if err == nil {
				err = g.failResponse(&r, ended, errRestarted)
			}
			if err != nil && !errors.Is(err, state.ErrNotFound) { // it expired just now
				return fmt.Errorf("settle response %s: %w", h.ID, err)
			}
			return nil
		})
	}
	return failed, p.Wait()
}

// restoreRun returns another run of a stored response. The error is ErrTaken if another process runs it, and one that
// is passing if another call may succeed. After others the response cannot be run any more.
func (g *Registry) restoreRun(ctx context.Context, r *work.StoredResponse, ended func(state.Node) bool,
	restore RestoreRequest) (*run, error) {
	job := Job{ID: r.ID, Owner: r.Owner, Queued: r.Body, Streamed: r.Streamed, run: r.Runs + 1}
	if r.Cancelled {
		return nil, errCancelled
	}
	if r.RequestSize == 0 || job.run > maxTries {
		return nil, errRestarted
	}
	var err error
	if job.Kept, err = work.ReadResponseRequest(ctx, g.store, r.ID, r.Owner); err != nil {
		return nil, restartError(err)
	}
	if job.Request, err = restore(ctx, r.ID, job.Kept); err != nil {
		return nil, err
	}
	if r.Conversation != "" {
		if job.Turn, err = work.BeginTurn(ctx, g.store, r.Conversation, r.Owner); err != nil {
			return nil, restartError(err)
		}
		job.Input = r.Input
	}
	run := newRun(job, g.requests.Memory())
	g.slots.Adopt(string(run.job.Owner), 1)
	g.addRun(run)
	run.memory.Adopt(job.size())
	// A claim whose outcome is not known would leave the response to this process, which would not run it.
	_, err = work.UpdateResponse(context.WithoutCancel(ctx), g.store, r.ID, r.Owner,
		work.ResponseUpdate{Run: true, Ended: ended})
	if err != nil {
		g.removeRun(run)
		return nil, restartError(err)
	}
	return run, nil
}

// restartError returns the cause with which a response fails, together with the error if Resume may pass the response
// over instead.
func restartError(err error) error {
	if passing(err) || errors.Is(err, work.ErrTaken) || errors.Is(err, work.ErrConversationInUse) {
		return fmt.Errorf("%w: %w", errRestarted, err)
	}
	return errRestarted
}

// failResponse stores the failure of a response that cannot be continued, or its cancellation. The number of its event
// is higher than those that were sent but not stored, so that a client that resumes gets it. Only
// streams of background responses can be resumed.
func (g *Registry) failResponse(r *work.StoredResponse, ended func(state.Node) bool, cause error) error {
	var failure *dialogue.Error
	if !errors.As(cause, &failure) {
		failure = dialogue.ServerError(errCrashed, cause)
	}
	body := responses.Failed(r.Body, failure)
	if errors.Is(cause, errCancelled) {
		body = responses.Cancelled(r.Body, g.now())
	}
	number := int64(max(r.Runs, 1)) * maxLog
	var log []byte
	if r.Streamed && r.Background {
		log = failedEvent(body, number)
	}
	return g.updateStored(r.ID, r.Owner,
		work.ResponseUpdate{Body: body, Events: log, LastEvent: number, Ended: ended})
}
