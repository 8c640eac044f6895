package tokens

import (
	"net/netip"
	"time"
)

// Statuses of a user.
const (
	StatusActive   = 1
	StatusDisabled = 2
)

// User is an account without its money.
type User struct {
	ID           int64
	Username     string
	Email        string
	Status       int
	Admin        bool // may administer the gateway
	Leads        bool // leads the group that the user is in
	SecondFactor bool // signing in takes a code as well
	HasPassword  bool // false: the user signs in through a provider only
	Created      time.Time
	Seen         time.Time // last use of a page, rounded to 15 minutes; zero: never
	Erased       time.Time // zero: the user was not erased
}

// Active reports whether the account may be used.
func (u *User) Active() bool { return u.Status == StatusActive }

// NewUser describes an account for CreateUser.
type NewUser struct {
	Username string // 1 to 64 letters, digits and ._@+- ; unique without regard to case
	Email    string // may be empty
	Password string // 8 to 512 bytes
	Admin    bool   // may administer the gateway
}

// Login has the fields of a sign-in form.
type Login struct {
	Username string
	Password string
	From     netip.Addr // the client's address; the zero Addr counts as one more address
	// Device names a browser that has signed in to this account before, or is "" for an unknown browser. The
	// caller must have verified it.
	Device string
	// Browser is that of Sender.
	Browser string
}

// Sender says where a request of a browser comes from, for the list of sessions. The zero Sender says nothing.
type Sender struct {
	Address netip.Addr
	Browser string // a name for people, such as "Firefox 143 on Linux"
}

// Session is a login in a browser. ID is not the cookie and may be shown. CSRF tokens are bound to it.
type Session struct {
	ID      string
	User    User
	Created time.Time // when the user signed in
	Expires time.Time
	Seen    time.Time // rounded to 15 minutes
	// Browser and Address are those of the request at the time of Seen. They are "" if they are unknown.
	Browser, Address string
	// Strong says that the login proved two factors by itself, without a code of the user's second factor.
	Strong bool
	// Issuer is the OpenID provider at which the user signed in, or "".
	Issuer string
}

// DeveloperToken lets programs register apps for a user (decisions, DEVELOPER_TOKEN). Its scope is always
// ScopeDeveloper.
type DeveloperToken struct {
	ID      string
	User    int64
	Name    string
	Created time.Time
	Revoked time.Time // zero if it is not revoked
}

// App is a registered OAuth client.
type App struct {
	ID          int64
	ClientID    string
	Owner       int64
	Name        string
	Description string
	RedirectURI string // the first of RedirectURIs
	// RedirectURIs are all addresses to which a browser may be sent with a code. They are compared byte by byte.
	RedirectURIs []string
	Logo         []byte // a small PNG, or nil
	Created      time.Time
	Disabled     time.Time // zero if it is enabled
	// PreviousSecretUntil is the end of the secret before the last rotation, or zero if there is none.
	PreviousSecretUntil time.Time
	// SecretEnd and PreviousEnd are the last characters of the secrets, or "" for secrets from before they were kept.
	// SecretUsed and PreviousUsed say when each last brought tokens, to the hour; zero: never.
	SecretEnd, PreviousEnd   string
	SecretUsed, PreviousUsed time.Time
}

// Allows reports whether a browser may be sent to uri with a code of the app. Addresses are compared byte by byte
// (RFC 9700 2.1).
func (a *App) Allows(uri string) bool { return contains(a.RedirectURIs, uri) }

// AppChange is an update of an app. A nil field stays unchanged.
type AppChange struct {
	Name         *string   // 1 to 100 characters
	Description  *string   // at most 2000 characters
	RedirectURIs *[]string // 1 to 10 addresses by the rules of NewApp; the first one is App.RedirectURI
	// Logo is a PNG or JPEG picture of at most MaxLogo bytes, or empty to remove the logo. The app gets a small PNG
	// that is drawn from it, so that nothing else of the file is ever served.
	Logo *[]byte
	// Enabled is for operators. An app that is disabled is refused with all its tokens until it is enabled again.
	Enabled *bool
}

// AppUse counts the users who have allowed an app, for its owner. It names none of them, because the owner has no right
// to the name of a user who granted the scope balance only.
type AppUse struct {
	Users  int            // with a live grant
	Grants int            // live grants, of which a user has one for each device
	Scopes map[string]int // users by scope
	First  time.Time      // when the oldest live grant was made; zero: there is none
	Latest time.Time      // when the newest live grant was made
}

// NewApp describes an app for RegisterApp.
type NewApp struct {
	Owner       int64
	Name        string // 1 to 100 characters
	Description string // at most 2000 characters
	RedirectURI string // https, or http on loopback; at most 2048 bytes
	// MoreURIs are further addresses, by the same rules.
	MoreURIs []string
	// Operator is set if an operator registers the app, so that the owner's ceiling does not apply.
	Operator bool
}

// Approval is a user's consent to an app, or a request to use an earlier consent.
type Approval struct {
	User        int64
	AuthTime    time.Time // when the user signed in: Session.Created
	ClientID    string
	RedirectURI string
	Scopes      []string // from ParseScopes
	Challenge   string   // PKCE code_challenge of S256, or ""
	// Request is the authorization request, which gets at most one code.
	Request Once
	// Consented is set if the user just consented to exactly this, on the consent page or by typing
	// credentials on a sign-in page that named app, host and scopes. Otherwise an earlier consent must cover
	// it, else the error is ErrConsentRequired.
	Consented bool
}

// ClientCredentials authenticate an app.
type ClientCredentials struct {
	ID, Secret string
	From       netip.Addr
}

// Exchange is a token request with a code.
type Exchange struct {
	Client      ClientCredentials
	Code        string
	RedirectURI string
	Verifier    string // PKCE code_verifier, or ""
}

// Refresh is a token request with a refresh token.
type Refresh struct {
	Client ClientCredentials
	Token  string
	Scopes []string // nil means those of the grant
}

// Tokens are the reply to Exchange and Refresh.
type Tokens struct {
	Access    string
	ExpiresIn time.Duration // in whole seconds
	Refresh   string
	Scopes    []string
}

// Access describes a live access token.
type Access struct {
	User    User
	App     int64
	Grant   string
	Scopes  []string
	Expires time.Time
}

// Allows reports whether the token has the scope.
func (a *Access) Allows(scope string) bool { return contains(a.Scopes, scope) }

// Introspection describes a client's own token (RFC 7662). All other fields are zero if Active is false.
type Introspection struct {
	Active   bool
	Refresh  bool // it is a refresh token
	ClientID string
	User     User
	Scopes   []string
	Issued   time.Time
	Expires  time.Time
}

// AllowedApp is an app that may see something of a user, for the account page.
type AllowedApp struct {
	App     App
	Scopes  []string  // of the consent and of all live grants
	Since   time.Time // when the first of them was given
	Used    time.Time // when tokens were issued last; zero: the app has not redeemed a code
	Devices int       // live grants whose code was redeemed
}
