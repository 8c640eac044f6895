package oauth

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/browser"
)

// Auto says what auto_authorize=true is worth (decisions, authorize).
type Auto string

// The meanings of auto_authorize.
const (
	// AutoLogin: credentials typed in the same transaction are the consent; a
	// session needs an earlier one.
	AutoLogin Auto = "login"
	// AutoConsented: only an earlier consent makes the page superfluous.
	AutoConsented Auto = "consented"
	// AutoNever: the parameter is ignored.
	AutoNever Auto = "never"
)

// Accounts tells what a user has, in micro-dollars, by username.
type Accounts interface {
	Balance(account string) (credits, spent, held int64)
}

// Redeemer takes redeem codes: state.ErrNotFound, money.ErrRedeemed.
type Redeemer interface {
	Redeem(ctx context.Context, account, code string) (amount int64, err error)
}

// Options are what the service is built of.
type Options struct {
	Logger   *slog.Logger
	Registry *tokens.Client
	Browser  *browser.Guard
	Accounts Accounts
	Redeemer Redeemer
	// Issuer is where the service is reached, scheme://host[:port]. What a
	// request says about that in Host or elsewhere is never believed.
	Issuer string
	// Auto may answer otherwise from one time to the next. What is under way goes
	// on as it began, so that what a page has promised is kept.
	Auto func() Auto
	// TopUpURL replaces the gateway's own top-up page; "": it does not.
	TopUpURL func() string
	Now      func() time.Time
}

// Paths of the service.
const (
	pathApps       = "/api/oauth_apps"
	pathAuthorize  = "/api/oauth2/authorize"
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

// Lifetimes of what browsers carry, sealed, from one page to the next.
const (
	stepLife    = 10 * time.Minute // one page of an authorization request
	requestLife = 30 * time.Minute // all of its pages together
	linkLife    = 10 * time.Minute // a top-up link
	topUpLife   = 30 * time.Minute // the top-up page that a link has opened
)

// Service serves the routes. It keeps nothing between two requests, so any number of
// requests of one client takes nothing away from another. Any goroutine may use it.
type Service struct {
	options  Options
	metadata []byte
}

// New makes a Service.
func New(o Options) *Service { return &Service{options: o, metadata: describe(o.Issuer)} }

// Routes calls handle with every method, path and handler of the service.
func (s *Service) Routes(handle func(pattern string, h http.HandlerFunc)) {
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
	handle("GET "+pathTopUpPage, s.topUpPage)
	handle("POST "+pathTopUpPage, s.redeem)
}
