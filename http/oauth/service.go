package oauth

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/http/auth"
	"stagedoor/http/web/browser"
	"stagedoor/http/web/pages"
	"stagedoor/state"
)

// Auto is the meaning of the parameter auto_authorize=true. The operator configures it.
type Auto string

// The meanings of auto_authorize.
const (
	// AutoLogin takes a password that was typed for this request as the consent. A user with a
	// session needs an earlier consent.
	AutoLogin Auto = "login"
	// AutoConsented skips the consent page only if the user has consented before.
	AutoConsented Auto = "consented"
	// AutoNever ignores the parameter.
	AutoNever Auto = "never"
)

// Accounts reads balances by username. Amounts are in micro-dollars.
type Accounts interface {
	Balance(account string) (credits, spent, held int64)
}

// Redeemer adds the value of a redeem code to an account. Redeem returns state.ErrNotFound for an
// unknown code and money.ErrRedeemed for a code that was used before.
type Redeemer interface {
	Redeem(ctx context.Context, account, code string) (amount int64, err error)
}

// Options configure a Service. Every field is required.
type Options struct {
	Logger   *slog.Logger
	Registry *tokens.Client
	Browser  *browser.Guard
	Accounts Accounts
	Redeemer Redeemer
	// Issuer is the service's public address, scheme://host[:port]. It is configured because the
	// Host header and other addresses in requests come from outside and are never trusted.
	Issuer string
	// Auto is read when an authorization request arrives. The request keeps that value until it
	// ends, so that the pages do what they have announced after a change of the configuration.
	Auto func() Auto
	// Offers returns the providers at which the visitor may sign in, each of which leads on to next.
	Offers func(v *browser.Visitor, next string) []pages.Offer
	// Passkey returns the form with which a device signs in and goes on to next, or nil.
	Passkey func(v *browser.Visitor, next string) *pages.Passkey
	// TopUpURL returns the address of the operator's own top-up page, or "" to use the gateway's
	// page.
	TopUpURL func() string
	// Mistakes returns what is wrong with the configuration file on disk, which administrators see.
	Mistakes func() []string
	Now      func() time.Time
}

// Paths of the service.
const (
	pathApps       = "/api/oauth_apps"
	pathAuthorize  = pages.PathAuthorize
	pathSignIn     = "/api/oauth2/sign-in"
	pathConsent    = "/api/oauth2/consent"
	pathToken      = "/api/oauth2/token"
	pathUserInfo   = "/api/oauth2/userinfo"
	pathTopUp      = "/api/oauth2/topup"
	pathRevoke     = "/api/oauth2/revoke"
	pathIntrospect = "/api/oauth2/introspect"
	pathMetadata   = "/.well-known/oauth-authorization-server"
	pathTopUpPage  = "/topup"
)

// Lifetimes of the sealed data that browsers carry from one page to the next.
const (
	stepLife    = 10 * time.Minute // one page of an authorization request
	requestLife = 30 * time.Minute // all of its pages together
	linkLife    = 10 * time.Minute // a top-up link
	topUpLife   = 30 * time.Minute // the top-up page that a link has opened
)

// Service handles the routes of the authorization service. It keeps nothing between two requests,
// so no client can use up memory that another needs. It is safe for concurrent use.
type Service struct {
	options  Options
	metadata []byte
}

// New returns a Service that is ready for Routes.
func New(o Options) *Service { return &Service{options: o, metadata: buildMetadata(o.Issuer)} }

// Routes calls handle once for each route with its pattern and handler.
func (s *Service) Routes(to func(pattern string, h http.HandlerFunc)) {
	handle := func(pattern string, h http.HandlerFunc) {
		to(pattern, auth.Acting(state.ActorVisitor, auth.ViaOAuth, h))
	}
	handle("POST "+pathApps, s.registerApp)
	handle("GET "+pathAuthorize, s.authorize)
	handle("GET "+pathSignIn, s.signInPage)
	handle("POST "+pathSignIn, s.signIn)
	handle("GET "+pathConsent, s.consentPage)
	handle("POST "+pathConsent, s.consent)
	handle("POST "+pathToken, s.token)
	handle("GET "+pathUserInfo, s.userInfo)
	handle("GET "+pathTopUp, s.topUp)
	handle("POST "+pathRevoke, s.revoke)
	handle("POST "+pathIntrospect, s.introspect)
	handle("GET "+pathMetadata, s.serveMetadata)
	handle("GET "+pages.PathLogos+"{client_id}", s.logo)
	handle("GET "+pathTopUpPage, s.topUpPage)
	handle("POST "+pathTopUpPage, s.redeem)
}
