package tokens

import (
	"context"

	"stagedoor/state"
	"stagedoor/state/identity"
)

// Refresh rotates a refresh token. It returns the errors of Exchange and ErrInvalidScope. Scopes below those of the
// grant restrict the access token only.
//
// One token of a grant is valid at a time. If an older one is used again, it was copied, and it is unknown by whom,
// so the grant ends (RFC 9700 4.14.2). Config.RefreshGrace makes an exception for the token before the current one.
func (c *Client) Refresh(ctx context.Context, r Refresh) (Tokens, error) {
	client := r.Client.hashed()
	random, err := draw(c.random, 2*entropy)
	if err != nil {
		return Tokens{}, err
	}
	fam, well := kindRefresh.parseFamily(r.Token)
	familyHash, tokenHash := fam.hash(), state.HashSecret(r.Token)
	return decide(ctx, c, client, func(tx *state.Tx) (Tokens, error) {
		app, err := authenticate(tx.View(), client)
		if err != nil {
			return Tokens{}, err
		}
		g, ok := identity.FindGrantByFamily(tx.View(), familyHash)
		if !well || !ok || g.App != app.ID || !g.Live(tx.Now()) || g.Refresh.Generation == 0 {
			return Tokens{}, ErrInvalidGrant
		}
		if u, ok := identity.FindUser(tx.View(), g.User); !ok || !u.Active() {
			return Tokens{}, ErrInvalidGrant
		}
		f := fresh{family: fam, access: random[:entropy], refresh: random[entropy:]}
		if !g.Refresh.Hash.Equal(tokenHash) {
			return c.reused(tx, g, r.Token, tokenHash, fam)
		}
		if err := noteUse(tx, app, client.secret); err != nil {
			return Tokens{}, err
		}
		return c.rotate(tx, g, &r, f)
	})
}

// rotate replaces the refresh token of a grant and issues an access token, with the scopes of the
// grant or fewer. If the configuration allows it, the old token is accepted again for a short time
// and leads to the same successor, because the client may not have received the first reply.
func (c *Client) rotate(tx *state.Tx, g identity.Grant, r *Refresh, f fresh) (Tokens, error) {
	scopes := g.Scopes
	if r.Scopes != nil {
		scopes = ordered(r.Scopes)
	}
	if len(scopes) == 0 || !covers(g.Scopes, scopes) || !covers(g.Scopes, r.Scopes) {
		return Tokens{}, ErrInvalidScope
	}
	old := g.Refresh
	g.Refresh = identity.Refresh{Generation: old.Generation}
	if c.config.RefreshGrace > 0 {
		g.Refresh.Previous, g.Refresh.PreviousUntil = old.Hash, tx.Now().Add(c.config.RefreshGrace)
		g.Refresh.Successor = sealSuccessor(r.Token, f)
	}
	return c.issue(tx, g, scopes, f)
}

// reused decides about an older token of the family. Within the grace, and before its successor was used, it gets
// the same tokens once more. Otherwise the grant ends. After the successor was used, Previous no longer has its
// tokens.
// The successor is sealed with the old token itself, which only its holder has, so that the record
// in the state does not contain a usable token.
func (c *Client) reused(tx *state.Tx, g identity.Grant, token string, hash state.Hash, fam family) (Tokens, error) {
	if !g.Refresh.Previous.Equal(hash) || !tx.Now().Before(g.Refresh.PreviousUntil) {
		return Tokens{}, refuseAndRevoke(tx, g, "refresh_reused")
	}
	f, ok := openSuccessor(token, fam, g.Refresh.Successor)
	if !ok {
		return Tokens{}, refuseAndRevoke(tx, g, "refresh_reused")
	}
	t := Tokens{Access: f.accessToken(), Refresh: f.refreshToken()}
	a, _, ok := identity.FindAccessToken(tx.View(), state.HashSecret(t.Access))
	if !ok {
		return Tokens{}, ErrInvalidGrant // revoked meanwhile
	}
	t.ExpiresIn, t.Scopes = remaining(tx.Now(), a.Expires), a.Scopes
	return t, nil
}
