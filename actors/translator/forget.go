package translator

import (
	"context"
	"errors"
	"net/http"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// ErrNoProvider is the error of a deletion at a provider that is not configured.
var ErrNoProvider = errors.New("the provider is not configured")

// DeleteResponse deletes a response at the provider that keeps it. A provider that
// does not know the response is no error, and one that is not configured any more is
// ErrNoProvider.
func (s *Service) DeleteResponse(ctx context.Context, provider, id string) error {
	p, shape := s.engine.Provider(provider), s.shape(dialogue.Responses)
	if p == nil || p.Client == nil || shape == nil {
		return ErrNoProvider
	}
	ctx, cancel := context.WithTimeout(ctx, inquiryTimeout)
	defer cancel()
	reply, err := p.Client.Ask(ctx, upstream.Request{Method: http.MethodDelete, Path: "/responses/" + id},
		upstream.Dialect{Shape: dialogue.Responses, Authorize: shape.Authorize, DecodeError: shape.DecodeError})
	var f *upstream.Failure
	switch {
	case err == nil:
		reply.Close()
		return nil
	case upstream.NotFound(err):
		return nil
	case errors.As(err, &f):
		return f.Err
	}
	return err
}
