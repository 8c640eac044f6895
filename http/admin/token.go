package admin

import (
	"context"
	"net/http"

	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/identity"
)

// tokenHash is the body of PUT /token. It carries only the hash, so the token itself never crosses
// the socket. The zero hash removes the token.
type tokenHash struct {
	Hash state.Hash `json:"hash"`
}

// SetToken replaces the admin token that was created by command. The zero hash removes it.
func SetToken(ctx context.Context, s *state.State, h state.Hash) error {
	if h == (state.Hash{}) {
		return identity.RemoveAdminToken(ctx, s)
	}
	return identity.SetAdminToken(ctx, s, h)
}

// handleSetToken handles PUT /token.
func handleSetToken(s *state.State) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in tokenHash
		if err := readBody(r, &in); err != nil {
			writeReply(w, nil, dialogue.Invalid("hash", "must be the hash of a token"))
			return
		}
		writeReply(w, in, SetToken(r.Context(), s, in.Hash))
	}
}

// SetAdminToken calls SetToken in the running gateway.
func (c *Client) SetAdminToken(ctx context.Context, h state.Hash) error {
	return c.do(ctx, http.MethodPut, "/token", tokenHash{h}, nil)
}
