package sandbox

import (
	"context"
	"errors"
	"net/http"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/sandbox/clip"
	"stagedoor/providers/sandbox/job"
)

// Submit begins a video job with the faults that were ordered for it, in header
// or in its prompt. The error is a *dialogue.Error, ErrCut, ErrGarbage or the
// end of ctx. After the last three the job has begun all the same, and the same
// key finds it, without the fault: that is what they are for.
func (m *Model) Submit(ctx context.Context, e *job.Engine, key string, header http.Header, s job.Spec) (string, error) {
	script, err := ParseScript(m.Base, header.Get(Header), s.Prompt)
	if err != nil {
		return "", err
	}
	p := &player{ctx: ctx, script: script, env: m.Env}
	defer p.stop()
	if err := p.wait(m.Env.Now().Add(script.Delay)); err != nil {
		return "", err
	}
	switch {
	case script.Status != 0:
		return "", script.refusal()
	case script.Block:
		return "", &dialogue.Error{Status: 400, Type: "video_generation_user_error", Code: "moderation_blocked",
			Message: "the sandbox's moderation blocks the prompt as it was told to"}
	}
	s.Faults = script.Job
	id, err := e.Submit(ctx, key, s)
	switch {
	case errors.Is(err, clip.ErrSpec):
		return "", dialogue.Invalid("size", "the sandbox has no clip of this size and length")
	case err != nil:
		return "", err
	}
	if script.Fault != NoFault && !e.Repeated(id) {
		return "", p.failure()
	}
	return id, nil
}

// failure is a fault as an error.
func (p *player) failure() error {
	switch p.script.Fault {
	case Cut:
		return ErrCut
	case Garbage:
		return ErrGarbage
	case Stall:
		<-p.ctx.Done()
		return context.Cause(p.ctx)
	}
	return &dialogue.Error{Status: 500, Type: dialogue.TypeAPI, Code: "sandbox_error", Message: "the sandbox failed as it was told to"}
}
