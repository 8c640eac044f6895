package oauth

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/http/browser"
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

// Redeemer takes redeem codes: state.ErrNotFound, state.ErrRedeemed.
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
	Random   io.Reader
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

// Bounds of what is kept between two requests. The oldest goes first.
const (
	maxTransactions = 10_000
	transactionLife = 10 * time.Minute
	maxTickets      = 10_000
	ticketLife      = 10 * time.Minute
	maxVisits       = 10_000
	visitLife       = 30 * time.Minute
)

// Service serves the routes. Any goroutine may use it.
type Service struct {
	options      Options
	metadata     []byte
	transactions *shelf[*transaction]
	tickets      *shelf[*ticket]
	visits       *shelf[*visit]
}

// New makes a Service.
func New(o Options) *Service {
	return &Service{
		options:      o,
		metadata:     describe(o.Issuer),
		transactions: newShelf[*transaction](o, maxTransactions, transactionLife),
		tickets:      newShelf[*ticket](o, maxTickets, ticketLife),
		visits:       newShelf[*visit](o, maxVisits, visitLife),
	}
}

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
