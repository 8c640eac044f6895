package tokens

import (
	"net/netip"
	"time"
)

// Statuses of a user (imagegen-and-oauth.md 2.4, decisions).
const (
	StatusActive   = 1
	StatusDisabled = 2
)

// User is an account as others may see it. Its money is not here.
type User struct {
	ID       int64
	Username string
	Email    string
	Status   int
	Admin    bool // may administer the gateway
	Created  time.Time
}

// Active tells whether the account may be used.
func (u *User) Active() bool { return u.Status == StatusActive }

// NewUser is what CreateUser wants.
type NewUser struct {
	Username string // 1 to 64 letters, digits and ._@+- ; unique whatever the case
	Email    string // may be empty
	Password string // 8 to 512 bytes
	Admin    bool   // may administer the gateway
}

// Login is what a sign-in form carries.
type Login struct {
	Username string
	Password string
	From     netip.Addr // who asks; the zero Addr is one more address
	// Device names a browser that is known to have signed in to this account before; "":
	// the browser is not known. It is the caller's to be sure of that.
	Device string
}

// Session is a login in a browser. ID is not the cookie and may be shown; it is
// the thing to bind CSRF tokens to.
type Session struct {
	ID      string
	User    User
	Created time.Time // when the password was typed
	Expires time.Time
	Seen    time.Time // to the hour
}

// DeveloperToken lets programs register apps for a user (decisions,
// DEVELOPER_TOKEN). Its scope is always ScopeDeveloper.
type DeveloperToken struct {
	ID      string
	User    int64
	Name    string
	Created time.Time
	Revoked time.Time // zero: it is not
}

// App is a registered OAuth client (imagegen-and-oauth.md 2.2).
type App struct {
	ID          int64
	ClientID    string
	Owner       int64
	Name        string
	Description string
	RedirectURI string // compared byte by byte
	Created     time.Time
	Disabled    time.Time // zero: it is not
	// PreviousSecretUntil is when the secret before the last rotation ends; zero:
	// there is none.
	PreviousSecretUntil time.Time
}

// NewApp is what RegisterApp wants.
type NewApp struct {
	Owner       int64
	Name        string // 1 to 100 characters
	Description string // at most 2000 characters
	RedirectURI string // https, or http on loopback; at most 2000 bytes
}

// Approval is a user's yes to an app, or the request to go by an earlier yes.
type Approval struct {
	User        int64
	AuthTime    time.Time // when the user typed the password: Session.Created
	ClientID    string
	RedirectURI string
	Scopes      []string // from ParseScopes
	Challenge   string   // PKCE code_challenge, S256; "": none
	// Request is the authorization request, which gets one code.
	Request Once
	// Consented: the user just said yes to exactly this, on the consent page or
	// by typing credentials on a sign-in page that named app, host and scopes.
	// Otherwise an earlier yes must cover it, else it is ErrConsentRequired.
	Consented bool
}

// ClientCredentials are how an app authenticates.
type ClientCredentials struct {
	ID, Secret string
	From       netip.Addr
}

// Exchange is the token request with a code.
type Exchange struct {
	Client      ClientCredentials
	Code        string
	RedirectURI string
	Verifier    string // PKCE code_verifier; "": none
}

// Refresh is the token request with a refresh token.
type Refresh struct {
	Client ClientCredentials
	Token  string
	Scopes []string // nil: those of the grant
}

// Tokens are the answer to both (imagegen-and-oauth.md 2.3).
type Tokens struct {
	Access    string
	ExpiresIn time.Duration // whole seconds
	Refresh   string
	Scopes    []string
}

// Access is what a live access token stands for.
type Access struct {
	User    User
	App     int64
	Grant   string
	Scopes  []string
	Expires time.Time
}

// Allows tells whether the token has the scope.
func (a *Access) Allows(scope string) bool { return contains(a.Scopes, scope) }

// Introspection is what a client learns of its own token (RFC 7662). All but
// Active is zero if that is false.
type Introspection struct {
	Active   bool
	Refresh  bool // a refresh token
	ClientID string
	User     User
	Scopes   []string
	Issued   time.Time
	Expires  time.Time
}

// Grant is one authorization of an app by a user, for the account page.
type Grant struct {
	ID      string
	User    int64
	App     App
	Scopes  []string
	Created time.Time
	Used    time.Time // when tokens were last issued
	Expires time.Time
	// Consented: the user said yes to this one; else it went by an earlier yes.
	Consented bool
}
