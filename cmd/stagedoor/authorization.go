package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"net/url"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/cmd/stagedoor/config"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/live"
	"stagedoor/http/oauth"
	"stagedoor/http/web/browser"
	"stagedoor/http/web/mailer"
	"stagedoor/http/web/places"
	"stagedoor/http/web/portal"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/money"
)

// lifetimes returns the lifetimes that the configuration sets. The specification sets the others.
func lifetimes(c *config.OAuth) tokens.Config {
	return tokens.Config{
		Code:         time.Duration(c.CodeTTL),
		RefreshGrace: time.Duration(c.RefreshGrace),
		Session:      time.Duration(c.SessionTTL),
	}
}

// authorization builds the authorization service, which is reached at issuer, and
// the pages of accounts and administration, which know the same browsers.
func (g *gateway) authorization(ctx context.Context, issuer string) (*oauth.Service, *portal.Portal, error) {
	key, err := g.state.Secret(ctx, "forms", 32)
	if err != nil {
		return nil, nil, datadir.Unavailable(err)
	}
	guard, err := browser.New(browser.Options{Registry: g.runtime.Tokens(), Origin: issuer, Key: key, Now: time.Now,
		Random: rand.Reader, MustEnrol: g.demandsSecondFactor})
	if err != nil {
		return nil, nil, err
	}
	g.browser = guard
	account := portal.New(portal.Options{Logger: g.logger, Registry: g.runtime.Tokens(),
		Ledger: g.runtime.Ledger(), State: g.state, Browser: guard, Providers: g.identities, Address: issuer,
		TextModels: g.textModels,
		Catalog:    g.runtime.Catalog,
		VideoPrice: g.runtime.Videos().Price,
		TopUpURL:   g.topUpURL, Overview: g.overview, FirstKey: g.firstKeyFor,
		Mistakes: g.mistakes, RequestLog: g.requests,
		Recordings: g.recordings(), Settings: g.settings, Erase: g.eraseUser,
		Mail:    g.mail,
		KeyName: g.keyName,
		Demands: g.demandsSecondFactor, AlertsTo: func() string { return g.config.Load().Alerts.Recipients() },
		Place: func(at netip.Addr) string { return g.places.Load().Of(at) },
		Live:  func() *live.Handlers { return g.live }, Now: time.Now, Random: rand.Reader})
	money := accounts{g.state}
	return oauth.New(oauth.Options{Logger: g.logger, Registry: g.runtime.Tokens(), Browser: guard, Accounts: money,
		Redeemer: money, Issuer: issuer, Auto: g.autoAuthorize, TopUpURL: g.topUpURL, Mistakes: g.mistakes,
		Offers: account.Offers, Passkey: account.Passkey, Now: time.Now}), account, nil
}

// mailer returns the client of the mail server that the configuration in force names.
func (g *gateway) mailer(issuer string) *mailer.Client {
	name := "localhost"
	if u, err := url.Parse(issuer); err == nil && u.Hostname() != "" {
		name = u.Hostname()
	}
	return mailer.New(mailer.Options{Name: name, Now: time.Now,
		Server: func() mailer.Server { return g.config.Load().SMTP.Server() }})
}

// openPlaces opens the file that says where addresses are. Pages show no places if it has become unusable since the
// configuration was checked.
func (g *gateway) openPlaces(file string) {
	if file == "" {
		g.places.Store(nil)
		return
	}
	f, err := places.Open(file)
	if err != nil {
		g.logger.Warn("the file of places cannot be used", "cause", err)
	}
	g.places.Store(f)
}

// demandsSecondFactor reports whether the role of a user needs a second factor.
func (g *gateway) demandsSecondFactor(u *tokens.User) bool {
	switch g.config.Load().SignIn.SecondFactor {
	case "everyone":
		return true
	case "administrators":
		return u.Admin
	}
	return false
}

// eraseUser erases a user for a page, as the administration API does.
func (g *gateway) eraseUser(ctx context.Context, user int64) (remaining int, err error) {
	_, remaining, err = g.admin.Erase(ctx, user)
	return remaining, err
}

// makeAdministrator makes the administrator that the configuration names, unless there is a user of that name.
// Containers have their first administrator this way, because a command would need a shell beside the gateway.
func (g *gateway) makeAdministrator(ctx context.Context, a *config.Admin) error {
	if _, ok := identity.FindUserByName(g.state.View(), a.User); ok || a.User == "" {
		return nil
	}
	_, err := g.runtime.Tokens().CreateUser(ctx,
		tokens.NewUser{Username: a.User, Password: a.Password.Reveal(), Admin: true})
	if err != nil {
		return fmt.Errorf("make the administrator of admin.user: %w", err)
	}
	g.logger.Info("made the administrator that the configuration names", "user", a.User)
	return nil
}

// autoAuthorize returns the setting of the configuration in force.
func (g *gateway) autoAuthorize() oauth.Auto { return oauth.Auto(g.config.Load().OAuth.AutoAuthorize) }

// topUpURL returns the address of the operator's own top-up page, or "". It is read from the configuration in force at
// each call.
func (g *gateway) topUpURL() string { return g.config.Load().OAuth.TopUpURL }

// maxTextModels bounds the models that the first page offers.
const maxTextModels = 50

// textModels returns the models to offer for a question: those that the catalogue's list knows for text, those of
// which it says nothing, or else what a pattern for every name serves.
func (g *gateway) textModels() []string {
	var names, unknown []string
	catalogue := g.runtime.Catalog()
	for _, m := range catalogue.Models() {
		entry, ok := catalogue.Resolve(m.ID)
		if !ok {
			continue
		}
		switch entry.Plan(func(int) int { return 0 })[0].Kind() {
		case "":
			unknown = append(unknown, m.ID)
		case "text":
			names = append(names, m.ID)
		}
	}
	names = append(names, unknown...)
	names = names[:min(len(names), maxTextModels)]
	if _, ok := g.runtime.Catalog().Resolve(anyModel); ok && len(names) == 0 {
		names = append(names, anyModel)
	}
	return names
}

// anyModel is a name for examples where only patterns say which models there are. The simulator knows it.
const anyModel = "sandbox"

// accounts are the balances as they were last committed. Keys name a user by
// username, and so does the ledger.
type accounts struct{ state *state.State }

// Balance implements oauth.Accounts.
func (a accounts) Balance(account string) (credits, spent, held int64) {
	b := money.FindAccount(a.state.View(), account)
	return b.Credits, b.Spent, b.Held
}

// Redeem implements oauth.Redeemer.
func (a accounts) Redeem(ctx context.Context, account, code string) (amount int64, err error) {
	_, redeemed, err := money.Redeem(ctx, a.state, account, code)
	return redeemed.Amount, err
}
