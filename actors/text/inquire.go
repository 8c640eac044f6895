package text

import (
	"context"
	"net/http"
	"time"

	"stagedoor/actors/engine"
	"stagedoor/actors/throttle"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/upstream"
)

// inquiryTimeout bounds a call that is no generation. Its caller has another answer.
const inquiryTimeout = 10 * time.Second

// Inquire asks a provider something that is no generation, such as how many tokens a request has,
// and returns the JSON of its answer. It returns nil if no provider of the plan speaks the client's
// shape, or if the first one that does has not answered well: the caller then estimates. It makes
// one call, within inquiryTimeout and under a permit of the provider's limiter. No actor is
// started, because nothing is streamed, settled or resumed.
func (s *Service) Inquire(ctx context.Context, o *Request, prepare func(dialogue.Target) (shapes.Call, error)) []byte {
	for i := range o.Plan {
		c := &o.Plan[i]
		p := s.engine.Provider(c.Provider.Name)
		if p == nil || s.simulates(p) || !c.Provider.Serves(o.Inbound.Name) {
			continue
		}
		call, err := prepare(c.Target(o.Inbound.Name))
		if err != nil {
			return nil
		}
		return s.inquire(ctx, p, o, call)
	}
	return nil
}

// inquire makes the call to one provider under a permit.
func (s *Service) inquire(ctx context.Context, p *engine.Provider, o *Request, call shapes.Call) []byte {
	ctx, cancel := context.WithTimeout(ctx, inquiryTimeout)
	defer cancel()
	permit, err := p.Limiter.Acquire(ctx, throttle.Ask{Owner: o.Owner, Class: o.Class})
	if err != nil {
		return nil
	}
	call.Owner = o.Owner
	body, f := s.fetch(ctx, p, o.Inbound, call)
	out := throttle.Outcome{Kind: throttle.Success}
	if f != nil {
		// That a provider cannot count says nothing of how it generates.
		out.Kind = throttle.Cancelled
		if f.Class == upstream.RateLimited {
			out.Kind, out.RetryAfter = throttle.RateLimited, f.RetryAfter
		}
	}
	permit.Release(out)
	return body
}

// fetch makes a call whose reply is one JSON document, and returns that. A reply with an error is recorded for the key
// of the provider, so that a refused key rests. Any other reply is a failure, too.
func (s *Service) fetch(ctx context.Context, p *engine.Provider, shape *shapes.Shape, call shapes.Call) ([]byte, *upstream.Failure) {
	key := p.Client.Keys().Take(s.env.Now(), "")
	reply, err := p.Client.Do(ctx, call, shape.Authorize, key)
	if err != nil {
		return nil, upstream.Broken(err)
	}
	defer reply.Close()
	body, err := reply.ReadAll(nil)
	if reply.Status != http.StatusOK {
		decoded := shape.DecodeError(reply.Status, reply.Header, body)
		f := upstream.Refused(shape.Traits, reply.Status, reply.Header, decoded, p.Secrets()...)
		p.Client.Keys().RecordFailure(key, "", f, s.env.Now())
		return nil, f
	}
	if err != nil || !reply.IsJSON() {
		return nil, upstream.Broken(err)
	}
	return body, nil
}
