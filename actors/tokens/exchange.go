package tokens

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"slices"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
)

// Exchange redeems a code once. It returns ErrInvalidClient, ErrInvalidGrant or *Limited.
//
// If a code is presented again, all tokens of its first use end (RFC 6749 4.1.2). A code that comes with a wrong
// verifier has leaked, so it ends too. The code stays usable after a failed authentication, after a request of another
// client, after a wrong redirect URI (a mistake of its own client), and after a request that lacks a parameter, which
// does not reach this function.
// Random bytes are drawn before the command, because a command may be decided more than once and
// must come to the same result.
func (c *Client) Exchange(ctx context.Context, e Exchange) (Tokens, error) {
	client := e.Client.hashed()
	random, err := draw(c.random, 2*entropy)
	if err != nil {
		return Tokens{}, err
	}
	fam, well := kindCode.parseFamily(e.Code)
	familyHash, codeHash := fam.hash(), state.HashSecret(e.Code)
	return decide(ctx, c, client, func(tx *state.Tx) (Tokens, error) {
		app, err := authenticate(tx.View(), client)
		if err != nil {
			return Tokens{}, err
		}
		g, ok := identity.FindGrantByFamily(tx.View(), familyHash)
		if !well || !ok || !g.Code.Hash.Equal(codeHash) {
			return Tokens{}, ErrInvalidGrant
		}
		if err := e.redeem(tx, &g, app); err != nil {
			return Tokens{}, err
		}
		g.Code.Used = tx.Now()
		if err := noteUse(tx, app, client.secret); err != nil {
			return Tokens{}, err
		}
		return c.issue(tx, g, g.Scopes, fresh{family: fam, access: random[:entropy], refresh: random[entropy:]})
	})
}

// redeem returns an error if the app may not have the tokens of the grant.
// The order of the checks matters. A code that was used before ends the grant, whichever client presents it, because
// the code has leaked. Then comes the check of the client, so that another one can neither use up the code nor try
// verifiers. Last are the checks that a mistaken client can fail without a loss.
func (e *Exchange) redeem(tx *state.Tx, g *identity.Grant, app identity.App) error {
	now := tx.Now()
	if !g.Revoked.IsZero() {
		return ErrInvalidGrant
	}
	if !g.Code.Used.IsZero() {
		return refuseAndRevoke(tx, *g, "code_replayed")
	}
	if !g.Live(now) || !now.Before(g.Code.Expires) || g.App != app.ID {
		return ErrInvalidGrant
	}
	if !provesChallenge(g.Code.Challenge, e.Verifier) {
		return refuseAndRevoke(tx, *g, "code_misused")
	}
	if g.RedirectURI != e.RedirectURI || !contains(app.RedirectURIs(), e.RedirectURI) {
		return ErrInvalidGrant
	}
	if u, ok := identity.FindUser(tx.View(), g.User); !ok || !u.Active() {
		return ErrInvalidGrant
	}
	return nil
}

// refuseAndRevoke returns ErrInvalidGrant and ends the grant although the command refuses.
// A command that returns an error normally leaves no change behind. keptRefusal makes the exception
// that the revocation needs.
func refuseAndRevoke(tx *state.Tx, g identity.Grant, reason string) error {
	if err := revoke(tx, g, reason); err != nil {
		return err
	}
	return &keptRefusal{ErrInvalidGrant}
}

// provesChallenge checks the verifier by RFC 7636 4.6 for S256. A verifier without a challenge is wrong too,
// because an attacker may have removed the challenge (RFC 9700 2.1.1).
func provesChallenge(challenge, verifier string) bool {
	if challenge == "" || verifier == "" {
		return challenge == verifier
	}
	sum := sha256.Sum256([]byte(verifier))
	same := subtle.ConstantTimeCompare([]byte(challenge), []byte(encoding.EncodeToString(sum[:]))) == 1
	return same && ValidVerifier(verifier)
}

// fresh has the random parts of new tokens.
type fresh struct {
	family          family
	access, refresh []byte
}

func (f *fresh) accessToken() string  { return kindAccess.format(f.access) }
func (f *fresh) refreshToken() string { return kindRefresh.formatWith(f.family, f.refresh) }

// maxAccess is the number of access tokens of a grant that may be valid at a time. An app can refresh its tokens
// without end, and each of them is in memory until it expires.
const maxAccess = 50

// issue makes the next pair of tokens of a grant. It changes one record and adds one. An access token beyond maxAccess
// takes the place of the oldest one.
// The refresh token is replaced with every use, so that a stolen one is noticed as soon as both
// holders have used theirs.
func (c *Client) issue(tx *state.Tx, g identity.Grant, scopes []string, f fresh) (Tokens, error) {
	now := tx.Now()
	t := Tokens{Access: f.accessToken(), Refresh: f.refreshToken(), ExpiresIn: c.config.Access, Scopes: scopes}
	g.Refresh.Generation++
	g.Refresh.Hash, g.Refresh.Issued = state.HashSecret(t.Refresh), now
	g.Expires = now.Add(max(c.config.Refresh, c.config.Access))
	id, err := putAccess(tx, g.ID, t, c.random)
	if err != nil {
		return Tokens{}, err
	}
	g.Access = append(slices.Clone(g.Access), id)
	for ; len(g.Access) > maxAccess; g.Access = g.Access[1:] {
		identity.RemoveAccessToken(tx, g.Access[0])
	}
	return t, identity.PutGrant(tx, g)
}

// putAccess stores the hash of a new access token, which is all that is kept of it, and returns its id.
func putAccess(tx *state.Tx, grant string, t Tokens, random io.Reader) (id string, err error) {
	id, err = state.NewID("acc_", tx.Now(), random)
	if err != nil {
		return "", err
	}
	return id, identity.PutAccessToken(
		tx,
		identity.AccessToken{ID: id, Hash: state.HashSecret(t.Access), Grant: grant, Scopes: t.Scopes,
			Created: tx.Now(), Expires: tx.Now().Add(t.ExpiresIn)},
	)
}

// remaining returns the whole seconds until at.
func remaining(now, at time.Time) time.Duration { return max(at.Sub(now).Truncate(time.Second), 0) }
