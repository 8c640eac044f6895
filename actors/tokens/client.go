package tokens

import (
	"context"
	"io"
	"time"

	"stagedoor/actors/kit"
	"stagedoor/state"
)

// Options are what the registry is built of.
type Options struct {
	System *kit.System
	State  *state.State
	Now    func() time.Time
	Random io.Reader // nil: crypto/rand
	Config Config
}

// Client is the registry as the rest of the program sees it. Any goroutine may
// use it. Methods without a context read a snapshot and never wait; the others
// return when what they did is durable.
//
// Errors are those of this package or the cause of ctx, and nothing else.
type Client struct{ options Options }

// Start spawns the registry's actor.
func Start(o Options) (*Client, error) { return &Client{options: o}, nil }

// CreateUser makes an active account. ErrExists: the username is taken.
func (c *Client) CreateUser(ctx context.Context, n NewUser) (User, error) {
	return User{}, ErrUnavailable
}

// SetPassword replaces the password and ends all of the user's sessions. Grants
// to apps stay.
func (c *Client) SetPassword(ctx context.Context, user int64, password string) error {
	return ErrUnavailable
}

// SetUserStatus enables or disables an account. While it is disabled its
// sessions, developer tokens, grants and access tokens are refused; sessions do
// not come back.
func (c *Client) SetUserStatus(ctx context.Context, user int64, status int) (User, error) {
	return User{}, ErrUnavailable
}

// User returns an account.
func (c *Client) User(id int64) (User, error) { return User{}, ErrNotFound }

// UserByName finds an account whatever the case of its name.
func (c *Client) UserByName(username string) (User, error) { return User{}, ErrNotFound }

// Users lists at most limit accounts with ids above after.
func (c *Client) Users(after int64, limit int) []User { return nil }

// Login makes a session. The cookie is shown once: ErrLogin, ErrUserDisabled,
// *Limited.
func (c *Client) Login(ctx context.Context, l Login) (cookie string, s Session, err error) {
	return "", Session{}, ErrUnavailable
}

// Session finds the session of a cookie, else ErrNoSession. Once an hour it
// notes that it was seen, which is a write.
func (c *Client) Session(ctx context.Context, cookie string) (Session, error) {
	return Session{}, ErrNoSession
}

// Sessions lists a user's live sessions, oldest first.
func (c *Client) Sessions(user int64) []Session { return nil }

// Logout ends the session of a cookie; an unknown one is no error.
func (c *Client) Logout(ctx context.Context, cookie string) error { return ErrUnavailable }

// CreateDeveloperToken makes a developer token, which is shown once.
func (c *Client) CreateDeveloperToken(ctx context.Context, user int64, name string) (token string, t DeveloperToken, err error) {
	return "", DeveloperToken{}, ErrUnavailable
}

// RevokeDeveloperToken ends a user's developer token. Doing it again changes
// nothing.
func (c *Client) RevokeDeveloperToken(ctx context.Context, user int64, id string) error {
	return ErrUnavailable
}

// DeveloperTokens lists a user's developer tokens, revoked ones included, oldest
// first.
func (c *Client) DeveloperTokens(user int64) []DeveloperToken { return nil }

// Developer is the user of a developer token, else ErrNoDeveloper.
func (c *Client) Developer(token string) (User, error) { return User{}, ErrNoDeveloper }

// RegisterApp makes an app. The secret is shown once.
func (c *Client) RegisterApp(ctx context.Context, n NewApp) (secret string, a App, err error) {
	return "", App{}, ErrUnavailable
}

// RotateSecret gives an app a new secret; the old one works on for
// Config.SecretOverlap, one before it ends at once.
func (c *Client) RotateSecret(ctx context.Context, app int64) (secret string, a App, err error) {
	return "", App{}, ErrUnavailable
}

// DisableApp refuses an app and all its tokens until EnableApp.
func (c *Client) DisableApp(ctx context.Context, app int64) error { return ErrUnavailable }

// EnableApp ends DisableApp.
func (c *Client) EnableApp(ctx context.Context, app int64) error { return ErrUnavailable }

// App returns an app by its number.
func (c *Client) App(id int64) (App, error) { return App{}, ErrNotFound }

// AppByClientID returns an app by its public id, disabled ones included.
func (c *Client) AppByClientID(clientID string) (App, error) { return App{}, ErrNotFound }

// Apps lists a user's own apps, oldest first; owner 0: everybody's.
func (c *Client) Apps(owner int64) []App { return nil }

// AutoApproved tells whether Approve needs no yes of the user for this: the same
// user approved the same app, redirect and at least these scopes before.
func (c *Client) AutoApproved(a Approval) bool { return false }

// Approve makes a grant and its authorization code. ErrInvalidClient: no such
// app, or disabled; ErrInvalidRequest: another redirect URI, or a bad challenge;
// ErrInvalidScope; ErrConsentRequired; ErrNotFound: no such user, or disabled.
func (c *Client) Approve(ctx context.Context, a Approval) (code string, err error) {
	return "", ErrUnavailable
}

// Exchange redeems a code: ErrInvalidClient, ErrInvalidGrant, *Limited.
func (c *Client) Exchange(ctx context.Context, e Exchange) (Tokens, error) {
	return Tokens{}, ErrUnavailable
}

// Refresh rotates a refresh token: as Exchange, and ErrInvalidScope.
func (c *Client) Refresh(ctx context.Context, r Refresh) (Tokens, error) {
	return Tokens{}, ErrUnavailable
}

// Revoke ends a token of the client (RFC 7009): a refresh token with its whole
// grant, an access token alone. One that is unknown or another client's is no
// error.
func (c *Client) Revoke(ctx context.Context, client ClientCredentials, token string) error {
	return ErrUnavailable
}

// Introspect tells a client about its own token (RFC 7662).
func (c *Client) Introspect(ctx context.Context, client ClientCredentials, token string) (Introspection, error) {
	return Introspection{}, ErrUnavailable
}

// Lookup is what a live access token stands for, else ErrInvalidToken. It is on
// the path of every resource request.
func (c *Client) Lookup(access string) (Access, error) { return Access{}, ErrInvalidToken }

// Grants lists a user's live grants that were redeemed, oldest first.
func (c *Client) Grants(user int64) []Grant { return nil }

// RevokeGrant ends one grant of a user with all its tokens.
func (c *Client) RevokeGrant(ctx context.Context, user int64, grant string) error {
	return ErrUnavailable
}

// RevokeUserApp ends everything a user allowed an app: its grants with their
// tokens, and the approvals it could go by.
func (c *Client) RevokeUserApp(ctx context.Context, user, app int64) error { return ErrUnavailable }
