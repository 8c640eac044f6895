package text

import (
	"context"
	"errors"
	"net/http"

	"stagedoor/providers/shapes"
	"stagedoor/providers/upstream"
)

// ErrNoProvider is the error of a deletion at a provider that is not configured.
var ErrNoProvider = errors.New("the provider is not configured")

// DeleteStored deletes a reply of an owner at the provider that stores it. path is the reply's
// address in the provider's shape. The memory of the provider's answer counts for the owner. A provider that does not
// know the reply is no error, and one that is not configured any more is ErrNoProvider.
func (s *Service) DeleteStored(ctx context.Context, shape *shapes.Shape, owner, provider, path string) error {
	p := s.engine.Provider(provider)
	if p == nil || p.Client == nil {
		return ErrNoProvider
	}
	ctx, cancel := context.WithTimeout(ctx, inquiryTimeout)
	defer cancel()
	reply, err := p.Client.SendWithKey(ctx, upstream.Request{Method: http.MethodDelete, Path: path, Owner: owner},
		upstream.Dialect{Authorize: shape.Authorize, DecodeError: shape.DecodeError})
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
