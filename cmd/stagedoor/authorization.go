package main

import (
	"context"
	"crypto/rand"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/cmd/stagedoor/config"
	"stagedoor/http/browser"
	"stagedoor/http/oauth"
	"stagedoor/state"
)

// lifetimes are those of the configuration; the specification has the others.
func lifetimes(c *config.OAuth) tokens.Config {
	return tokens.Config{Code: time.Duration(c.CodeTTL), RefreshGrace: time.Duration(c.RefreshGrace), Session: time.Duration(c.SessionTTL)}
}

// authorization builds the authorization service, which is reached at issuer.
func (g *gateway) authorization(ctx context.Context, c *config.OAuth, issuer string) (*oauth.Service, error) {
	key, err := g.state.Secret(ctx, "forms", 32)
	if err != nil {
		return nil, storageError(err)
	}
	guard, err := browser.New(browser.Options{Registry: g.house.Tokens(), Origin: issuer, Key: key, Now: time.Now, Random: rand.Reader})
	if err != nil {
		return nil, err
	}
	money := accounts{g.state}
	return oauth.New(oauth.Options{Logger: g.logger, Registry: g.house.Tokens(), Browser: guard, Accounts: money, Redeemer: money,
		Issuer: issuer, Auto: oauth.Auto(c.AutoAuthorize), TopUpURL: c.TopUpURL, Now: time.Now, Random: rand.Reader}), nil
}

// accounts are the balances as they were last committed. Keys name a user by
// username, and so does the ledger.
type accounts struct{ state *state.State }

// Balance implements oauth.Accounts.
func (a accounts) Balance(account string) (credits, spent, held int64) {
	b := a.state.Account(account)
	return b.Credits, b.Spent, b.Held
}

// Redeem implements oauth.Redeemer.
func (a accounts) Redeem(ctx context.Context, account, code string) (amount int64, err error) {
	_, redeemed, err := a.state.Redeem(ctx, account, code)
	return redeemed.Amount, err
}
