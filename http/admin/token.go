package admin

import (
	"context"
	"net/http"

	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/identity"
)

// tokenHash is the hash of a token of administration; the zero hash: none. The
// token itself never crosses the socket.
type tokenHash struct {
	Hash state.Hash `json:"hash"`
}

// SetToken replaces the token of administration that was made by command; the
// zero hash removes it.
func SetToken(ctx context.Context, s *state.State, h state.Hash) error {
	if h == (state.Hash{}) {
		return identity.RemoveAdminToken(ctx, s)
	}
	return identity.SetAdminToken(ctx, s, h)
}

// setToken is PUT /token.
func setToken(s *state.State) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in tokenHash
		if err := readBody(r, &in); err != nil {
			answer(w, nil, dialogue.Invalid("hash", "must be the hash of a token"))
			return
		}
		answer(w, in, SetToken(r.Context(), s, in.Hash))
	}
}

// SetAdminToken is SetToken on the gateway that is running.
func (c *Client) SetAdminToken(ctx context.Context, h state.Hash) error {
	return c.do(ctx, http.MethodPut, "/token", tokenHash{h}, nil)
}
