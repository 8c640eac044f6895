package soak

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/tidwall/gjson"
)

// grant holds an app's secrets of one authorization.
type grant struct {
	code     string
	redeemed verdict // unknown: asked, and the answer was lost
	asked    bool    // the code was sent at all
	access   string
	refresh  string   // the one that is good
	retired  []string // the ones before it
	// lost is set if the answer to a refresh was lost, so that the good token may be another one.
	lost bool
	// forgiven is set if every process that got the refresh in vain has a grace time, in which the old token gets the
	// same answer again.
	forgiven bool
	// revoking is set from before a revocation until its answer.
	revoking bool
	// dead is set once the grant has ended, so that nothing of it may be accepted any more.
	dead bool
	// counted is set once a check has found the last acknowledged change of the grant.
	counted bool
}

// grantee is an app, and a user who allows it to see the user's profile and balance. The user's browser keeps its
// session over all kills.
type grantee struct {
	soak     *soak
	browser  *browser
	client   string
	secret   string
	callback string
	random   *rand.Rand
	forgives bool // the process under test does
	live     []*grant
	dead     []*grant
	fresh    int // index of the first dead grant that no check has seen
	// successors are the answers by the code or token that got them: what is
	// accepted twice has two.
	successors map[string]string
}

// maxLive bounds the grants that live at a time, since every check looks at all of them.
const maxLive = 8

// step does what an app does, mostly rotations, because each of them makes one token good and another one bad.
func (g *grantee) step(ctx context.Context) error {
	if len(g.live) == 0 {
		return g.begin(ctx)
	}
	one := g.live[g.random.IntN(len(g.live))]
	switch n := g.random.IntN(100); {
	case n < 20 || one.refresh == "":
		if len(g.live) >= maxLive {
			return g.revoke(ctx, g.live[0])
		}
		return g.begin(ctx)
	case n < 80:
		return g.rotate(ctx, one)
	case n < 85:
		return g.revoke(ctx, one)
	case n < 90:
		return g.replay(ctx, one)
	}
	return g.alive(ctx, one)
}

// begin gets a code and redeems it. Some codes are left for the next process.
func (g *grantee) begin(ctx context.Context) error {
	one, err := g.obtain(ctx)
	if err != nil || one == nil || g.random.IntN(10) == 0 {
		return err
	}
	return g.redeem(ctx, one)
}

// obtain gets a code, or nil where something was wrong. After a fault it waits, so that a gateway that refuses
// everything does not fill the report within one cycle.
func (g *grantee) obtain(ctx context.Context) (*grant, error) {
	q := url.Values{
		"client_id":     {g.client},
		"redirect_uri":  {g.callback},
		"response_type": {"code"},
		"scope":         {"profile balance"},
		"state":         {"s"},
	}
	back, err := g.browser.authorize(ctx, g.soak.gateway.url+"/api/oauth2/authorize?"+q.Encode(), g.callback)
	if errors.Is(err, errLost) {
		return nil, err
	}
	if err != nil || back.Get("code") == "" {
		g.soak.wrong("authorize: %v %v", err, back)
		return nil, pause(ctx, time.Second)
	}
	one := &grant{code: back.Get("code")}
	g.live = append(g.live, one)
	return one, nil
}

// token asks the token endpoint.
func (g *grantee) token(ctx context.Context, pairs ...string) (answer, error) {
	form := url.Values{"client_id": {g.client}, "client_secret": {g.secret}}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return g.soak.gateway.postForm(ctx, g.soak.gateway.http, "/api/oauth2/token", form)
}

// redeem exchanges a code. If an earlier answer was lost, the code may have been redeemed already. The server then
// ends the grant, since a second redemption looks like theft.
func (g *grantee) redeem(ctx context.Context, one *grant) error {
	doubtful := one.asked
	one.asked = true
	a, err := g.token(ctx, "grant_type", "authorization_code", "code", one.code, "redirect_uri", g.callback)
	if err != nil {
		return err
	}
	switch {
	case a.status == http.StatusOK:
		one.redeemed = accepted
		g.take(one, one.code, &a)
		if doubtful {
			g.soak.settled(false)
		}
	case invalidGrant(&a) && doubtful:
		g.retire(one) // it was redeemed, and asking again ended that
		g.soak.settled(true)
	default:
		g.soak.wrong("a code that was handed out: %s", &a)
		g.retire(one)
	}
	return nil
}

// rotate exchanges the good refresh token. After a lost answer the old token is sent again: within the grace time of
// a process that forgives, it gets the same answer, and otherwise it ends the family.
func (g *grantee) rotate(ctx context.Context, one *grant) error {
	doubtful, forgiven := one.lost, one.forgiven
	one.lost, one.forgiven = true, g.forgives
	a, err := g.token(ctx, "grant_type", "refresh_token", "refresh_token", one.refresh)
	if err != nil {
		one.forgiven = one.forgiven && (forgiven || !doubtful)
		return err
	}
	switch {
	case a.status == http.StatusOK:
		one.lost = false
		one.retired = append(one.retired, one.refresh)
		g.take(one, one.refresh, &a)
		if doubtful && !forgiven {
			g.soak.settled(false)
		}
	case invalidGrant(&a) && doubtful && !forgiven:
		g.retire(one) // it was rotated, and asking again ended the family
		g.soak.settled(true)
	default:
		g.soak.wrong("the good refresh token (doubtful %v, forgiven %v): %s", doubtful, forgiven, &a)
		g.retire(one)
	}
	return nil
}

// take keeps the tokens that an answer has brought for used, a code or a refresh token. A code or token that gets two
// different answers was accepted twice.
func (g *grantee) take(one *grant, used string, a *answer) {
	one.access = gjson.GetBytes(a.body, "access_token").String()
	one.refresh = gjson.GetBytes(a.body, "refresh_token").String()
	if before, twice := g.successors[used]; twice && before != one.refresh {
		g.soak.wrong("%.3s... was accepted twice", used)
	}
	g.successors[used] = one.refresh
	one.counted = false
}

// revoke ends a grant at the revocation endpoint (RFC 7009). A grant without a token is redeemed first.
func (g *grantee) revoke(ctx context.Context, one *grant) error {
	if one.refresh == "" {
		return g.redeem(ctx, one)
	}
	one.revoking = true
	a, err := g.clientCall(ctx, "/api/oauth2/revoke", one.refresh)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		g.soak.wrong("revoke: %s", &a)
	}
	g.retire(one)
	return nil
}

// replay presents a code that was used before. It must be refused, and all tokens of the grant end with it (RFC 6749,
// section 4.1.2).
func (g *grantee) replay(ctx context.Context, one *grant) error {
	if one.lost || one.redeemed != accepted {
		return nil
	}
	one.revoking = true
	a, err := g.token(ctx, "grant_type", "authorization_code", "code", one.code, "redirect_uri", g.callback)
	if err != nil {
		return err
	}
	if !invalidGrant(&a) {
		g.soak.wrong("a code for the second time: %s", &a)
	}
	g.retire(one)
	return nil
}

// clientCall calls an endpoint with the credentials of the app.
func (g *grantee) clientCall(ctx context.Context, path, token string) (answer, error) {
	return g.soak.gateway.postForm(ctx, g.soak.gateway.http, path,
		url.Values{"client_id": {g.client}, "client_secret": {g.secret}, "token": {token}})
}

// alive uses an access token that must be good. Now and then it sends the token in the address, which must be refused.
func (g *grantee) alive(ctx context.Context, one *grant) error {
	if one.lost || one.revoking {
		return nil
	}
	a, err := g.soak.gateway.get(ctx, "/api/oauth2/userinfo", one.access)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK || gjson.GetBytes(a.body, "username").String() != g.browser.username {
		g.soak.wrong("a good access token: %s", &a)
	}
	if g.random.IntN(8) > 0 {
		return nil
	}
	a, err = g.soak.gateway.get(ctx, "/api/oauth2/userinfo?access_token="+one.access, "")
	if err == nil && a.status != http.StatusBadRequest {
		g.soak.wrong("an access token in an address: %s", &a)
	}
	return err
}

// retire moves a grant to those of which nothing may be good any more.
func (g *grantee) retire(one *grant) {
	one.dead = true
	g.live = slices.DeleteFunc(g.live, func(o *grant) bool { return o == one })
	g.dead = append(g.dead, one)
}

// check looks at all live grants, and at the dead ones that no check has seen, or at all of them.
func (g *grantee) check(ctx context.Context, all bool) error {
	for _, one := range slices.Clone(g.live) {
		if err := g.checkLive(ctx, one); err != nil {
			return err
		}
	}
	from := g.fresh
	if all {
		from = 0
	}
	for _, one := range g.dead[from:] {
		if err := g.checkDead(ctx, one); err != nil {
			return err
		}
		if !one.counted {
			one.counted = true
			g.soak.found("ends of grants")
		}
	}
	g.fresh = len(g.dead)
	return nil
}

// settle decides what a lost answer left open, and redeems what was left.
func (g *grantee) settle(ctx context.Context, one *grant) error {
	switch {
	case one.revoking:
		return g.revoke(ctx, one)
	case one.redeemed != accepted:
		return g.redeem(ctx, one)
	case one.lost:
		return g.rotate(ctx, one)
	}
	return nil
}

// checkLive checks that the good tokens of a grant are good and that the one before is not.
func (g *grantee) checkLive(ctx context.Context, one *grant) error {
	known, handedOut := !one.counted && !one.lost && one.redeemed == accepted, !one.asked
	if err := g.settle(ctx, one); err != nil || one.dead {
		return err
	}
	if handedOut {
		g.soak.found("codes")
	}
	if err := g.alive(ctx, one); err != nil {
		return err
	}
	if err := g.introspect(ctx, one.refresh, true); err != nil {
		return err
	}
	if n := len(one.retired); n > 0 {
		if err := g.introspect(ctx, one.retired[n-1], false); err != nil {
			return err
		}
	}
	if known {
		one.counted = true
		g.soak.found("refresh tokens")
	}
	return nil
}

// introspect checks what the server says of a token.
func (g *grantee) introspect(ctx context.Context, token string, active bool) error {
	a, err := g.clientCall(ctx, "/api/oauth2/introspect", token)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK || gjson.GetBytes(a.body, "active").Bool() != active {
		g.soak.wrong("introspection of %.3s..., which must be active: %v: %s", token, active, &a)
	}
	return nil
}

// checkDead checks that the access token, the code and the refresh token of an ended grant are all refused.
func (g *grantee) checkDead(ctx context.Context, one *grant) error {
	if one.access != "" {
		a, err := g.soak.gateway.get(ctx, "/api/oauth2/userinfo", one.access)
		if err != nil {
			return err
		}
		if a.status != http.StatusUnauthorized {
			g.soak.wrong("the access token of an ended grant: %s", &a)
		}
	}
	asks := [][]string{{"grant_type", "authorization_code", "code", one.code, "redirect_uri", g.callback}}
	if one.refresh != "" {
		asks = append(asks, []string{"grant_type", "refresh_token", "refresh_token", one.refresh})
	}
	for _, ask := range asks {
		a, err := g.token(ctx, ask...)
		if err != nil {
			return err
		}
		if !invalidGrant(&a) {
			g.soak.wrong("%s of an ended grant: %s", ask[1], &a)
		}
	}
	return nil
}

// invalidGrant reports whether a code or a token was refused for what it is.
func invalidGrant(a *answer) bool {
	return a.status == http.StatusBadRequest && gjson.GetBytes(a.body, "error").String() == "invalid_grant"
}

// pause waits, or ends the turn with the context's error.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
