package idp

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/oauth2"

	"stagedoor/state/share"
)

// Provider is a configured OpenID provider.
type Provider struct {
	Name   string // part of addresses: small letters, digits and -
	Label  string // for people
	Issuer string
	// ClientID and ClientSecret are those of the gateway at the provider. A public client has no secret.
	ClientID, ClientSecret string
	Scopes                 []string // beside openid
	// Strong says that every sign-in there proves two factors.
	Strong bool
	// Create lets people who are not linked to a user become one.
	Create bool
	// Domains are those of the verified e-mail addresses that may sign in; empty: all may.
	Domains []string
	// GroupsClaim is the claim that lists a person's groups.
	GroupsClaim string
	// Groups says which group of the gateway the people of a group of the provider are in. The first match counts.
	// If it is empty, the groups of users stay as they are.
	Groups []Mapping
	// Administrators are groups of the provider whose people administer the gateway. If there are none, roles stay as
	// they are.
	Administrators []string
}

// Mapping leads from a group of the provider to one of the gateway.
type Mapping struct{ From, To string }

// mapped reports whether a rule needs the groups of people.
func (p *Provider) mapped() bool { return len(p.Groups)+len(p.Administrators) > 0 }

// Attempt is a sign-in that is under way at a provider. The browser that began it carries it.
type Attempt struct {
	Provider string    `json:"p"`
	State    string    `json:"s"`
	Nonce    string    `json:"n"`
	Verifier string    `json:"v"`
	Expires  time.Time `json:"e"`
}

// Person is the human whom a provider has authenticated.
type Person struct {
	Issuer, Subject string
	// Username is a suggestion of the provider or the person, and may be any text.
	Username string
	// Email is "" unless the provider says that it has verified the address.
	Email  string
	Groups []string
}

// Life is the time within which a person comes back from a provider.
const Life = 10 * time.Minute

// Errors of Begin and Finish. They wrap the cause, which is for the log only.
var (
	// ErrUnknown means that no provider has the name, for example because it was removed from the configuration.
	ErrUnknown = errors.New("unknown provider")
	// ErrUnavailable means that the provider did not answer, or not as OpenID Connect demands.
	ErrUnavailable = errors.New("the provider is not available")
	// ErrForeign means that the answer does not belong to the attempt of this browser.
	ErrForeign = errors.New("the answer belongs to no attempt of this browser")
	// ErrDenied means that the provider or the person refused.
	ErrDenied = errors.New("the provider did not sign the person in")
	// ErrInvalid means that the provider's answer cannot be trusted.
	ErrInvalid = errors.New("the answer of the provider is not valid")
	// ErrDomain means that the person's e-mail address is of no domain that may sign in.
	ErrDomain = errors.New("the e-mail address may not sign in")
)

// maxCalls is the number of conversations with providers that may be under way in all.
const maxCalls = 64

// Client talks to the configured providers.
type Client struct {
	origin string
	now    func() time.Time
	places *share.Pool

	mu        sync.Mutex
	providers []*connection
}

// New returns a client without providers. origin is the scheme://host[:port] at which browsers reach the gateway.
func New(origin string, now func() time.Time) *Client {
	return &Client{origin: origin, now: now, places: share.New(share.SignIns, maxCalls, 1)}
}

// Places returns the pool of conversations with providers that are under way.
func (c *Client) Places() *share.Pool { return c.places }

// Configure replaces the providers. A provider that stays the same keeps what it has published.
func (c *Client) Configure(all []Provider) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var fresh []*connection
	for _, p := range all {
		i := slices.IndexFunc(c.providers, func(old *connection) bool { return reflect.DeepEqual(old.Provider, p) })
		if i >= 0 {
			fresh = append(fresh, c.providers[i])
			continue
		}
		fresh = append(fresh, newConnection(p, c.now))
	}
	c.providers = fresh
}

// Providers returns the configured providers in the sequence of the configuration.
func (c *Client) Providers() []Provider {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Provider, len(c.providers))
	for i, p := range c.providers {
		all[i] = p.Provider
	}
	return all
}

// find returns the connection to a provider.
func (c *Client) find(name string) (*connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.providers {
		if p.Name == name {
			return p, nil
		}
	}
	return nil, ErrUnknown
}

// Callback returns the path to which a provider sends people back.
func Callback(provider string) string { return "/signin/with/" + provider + "/callback" }

// oauth returns the client of a provider for the library.
func (c *Client) oauth(p *connection, d *discovered) *oauth2.Config {
	return &oauth2.Config{ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: d.endpoint,
		RedirectURL: c.origin + Callback(p.Name), Scopes: append([]string{oidc.ScopeOpenID}, p.Scopes...)}
}

// Begin returns the address at which a provider asks a person to sign in. fresh asks the provider not to be content
// with a person who has signed in there before. owner is the client's address, whose share of the places counts. It
// returns ErrUnknown, ErrUnavailable and *share.Refused.
func (c *Client) Begin(ctx context.Context, owner, name string, fresh bool) (address string, a Attempt, err error) {
	p, err := c.find(name)
	if err != nil {
		return "", a, err
	}
	if err := c.places.Take(owner, 1); err != nil {
		return "", a, err
	}
	defer c.places.Give(owner, 1)
	d, err := p.discover(ctx)
	if err != nil {
		return "", a, err
	}
	a = Attempt{Provider: name, State: oauth2.GenerateVerifier(), Nonce: oauth2.GenerateVerifier(),
		Verifier: oauth2.GenerateVerifier(), Expires: c.now().Add(Life)}
	options := []oauth2.AuthCodeOption{oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)}
	if fresh {
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"))
	}
	return c.oauth(p, d).AuthCodeURL(a.State, options...), a, nil
}

// signOutWithin bounds the time for which a person who has signed out waits for the document of the provider.
const signOutWithin = 3 * time.Second

// SignOut returns the address at which a person who signed in at an issuer signs out there and then comes back to a
// path of the gateway (OpenID Connect RP-Initiated Logout 1.0), with the label of the provider. It names the gateway by
// its client id, because ID tokens are not kept. It returns false if the provider is no longer configured, does not
// answer, or has no such address.
func (c *Client) SignOut(ctx context.Context, owner, issuer, back string) (address, label string, ok bool) {
	c.mu.Lock()
	i := slices.IndexFunc(c.providers, func(p *connection) bool { return p.Issuer == issuer })
	var p *connection
	if i >= 0 {
		p = c.providers[i]
	}
	c.mu.Unlock()
	if p == nil || c.places.Take(owner, 1) != nil {
		return "", "", false
	}
	defer c.places.Give(owner, 1)
	ctx, cancel := context.WithTimeout(ctx, signOutWithin)
	defer cancel()
	d, err := p.discover(ctx)
	if err != nil {
		return "", "", false
	}
	u, err := url.Parse(d.endSession)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", "", false
	}
	query := u.Query()
	query.Set("client_id", p.ClientID)
	query.Set("post_logout_redirect_uri", c.origin+back)
	u.RawQuery = query.Encode()
	return u.String(), p.Label, true
}

// maxCode bounds an authorization code.
const maxCode = 4 << 10

// Finish redeems a provider's answer to an attempt of the same browser and returns the person, with the provider. It
// returns all errors above, and *share.Refused.
func (c *Client) Finish(ctx context.Context, owner string, a *Attempt, answer url.Values) (Person, Provider, error) {
	p, err := c.find(a.Provider)
	if err != nil {
		return Person{}, Provider{}, err
	}
	for name := range answer {
		if len(answer[name]) > 1 {
			return Person{}, p.Provider, fmt.Errorf("%w: a parameter is repeated", ErrForeign)
		}
	}
	state := answer.Get("state")
	if a.State == "" || subtle.ConstantTimeCompare([]byte(state), []byte(a.State)) != 1 || !c.now().Before(a.Expires) {
		return Person{}, p.Provider, ErrForeign
	}
	if err := c.places.Take(owner, 1); err != nil {
		return Person{}, p.Provider, err
	}
	defer c.places.Give(owner, 1)
	d, err := p.discover(ctx)
	if err != nil {
		return Person{}, p.Provider, err
	}
	if iss := answer.Get("iss"); iss != p.Issuer && (iss != "" || d.namesIssuer) {
		return Person{}, p.Provider, fmt.Errorf("%w: it names another issuer", ErrInvalid)
	}
	code := answer.Get("code")
	switch {
	case answer.Has("error"):
		return Person{}, p.Provider, fmt.Errorf("%w: %s", ErrDenied, loggable(answer.Get("error")))
	case code == "" || len(code) > maxCode:
		return Person{}, p.Provider, fmt.Errorf("%w: it has no code", ErrInvalid)
	}
	person, err := c.redeem(ctx, p, d, a, code)
	return person, p.Provider, err
}

// redeem exchanges the code for the tokens and reads them.
func (c *Client) redeem(ctx context.Context, p *connection, d *discovered, a *Attempt, code string) (Person, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.http), callWithin)
	defer cancel()
	token, err := c.oauth(p, d).Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if refused := (*oauth2.RetrieveError)(nil); errors.As(err, &refused) && refused.Response.StatusCode < 500 {
		return Person{}, fmt.Errorf("%w: the code was refused with status %d: %s", ErrInvalid,
			refused.Response.StatusCode, loggable(refused.ErrorCode))
	}
	if err != nil {
		return Person{}, unavailable(err)
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := d.verifier.Verify(ctx, raw)
	if err != nil {
		return Person{}, fmt.Errorf("%w: %s", ErrInvalid, loggable(err.Error()))
	}
	var who claims
	switch err := id.Claims(&who.all); {
	case err != nil:
		return Person{}, fmt.Errorf("%w: its claims cannot be read", ErrInvalid)
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(a.Nonce)) != 1:
		return Person{}, fmt.Errorf("%w: the ID token has another nonce", ErrInvalid)
	case id.Subject == "" || len(id.Subject) > maxSubject:
		return Person{}, fmt.Errorf("%w: the ID token has no subject of 1 to 255 bytes", ErrInvalid)
	case who.text("azp") != p.ClientID && (who.text("azp") != "" || len(id.Audience) > 1):
		return Person{}, fmt.Errorf("%w: the ID token was issued to another client", ErrInvalid)
	case id.AccessTokenHash != "" && id.VerifyAccessToken(token.AccessToken) != nil:
		return Person{}, fmt.Errorf("%w: the access token does not belong to the ID token", ErrInvalid)
	}
	if who.lacks(&p.Provider) && d.provider.UserInfoEndpoint() != "" {
		info, err := d.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
		switch {
		case err != nil:
			return Person{}, unavailable(err)
		case info.Subject != id.Subject:
			return Person{}, fmt.Errorf("%w: the user info is of another person", ErrInvalid)
		case info.Claims(&who.more) != nil:
			return Person{}, fmt.Errorf("%w: the user info cannot be read", ErrInvalid)
		}
	}
	return who.person(&p.Provider, id.Subject)
}

// maxSubject is the longest subject that OpenID Connect allows.
const maxSubject = 255

// claims are those of an ID token and, where it lacks some, of the user info.
type claims struct{ all, more map[string]jsontext.Value }

// value decodes a claim into v, and reports whether there is one of that type.
func (c *claims) value(name string, v any) bool {
	raw, ok := c.all[name]
	if !ok {
		raw, ok = c.more[name]
	}
	return ok && json.Unmarshal(raw, v) == nil
}

// text returns a claim that is text, or "".
func (c *claims) text(name string) (text string) {
	_ = c.value(name, &text)
	return text
}

// lacks reports whether the ID token alone does not have what a sign-in needs.
func (c *claims) lacks(p *Provider) bool {
	_, email := c.all["email"]
	_, groups := c.all[p.GroupsClaim]
	_, name := c.all["preferred_username"]
	return p.mapped() && !groups || len(p.Domains) > 0 && !email || p.Create && !name && !email
}

// person returns the person whom the claims describe, or ErrDomain, or ErrInvalid where the provider did not send all
// groups.
func (c *claims) person(p *Provider, subject string) (Person, error) {
	who := Person{Issuer: p.Issuer, Subject: subject, Email: c.text("email"), Username: c.text("preferred_username")}
	var verified bool
	if !c.value("email_verified", &verified) {
		verified = c.text("email_verified") == "true" // some providers send a text
	}
	local, domain, ok := strings.Cut(who.Email, "@")
	if !verified || !ok || len(who.Email) > 254 {
		who.Email, domain = "", ""
	}
	who.Username = cmp.Or(who.Username, local)
	allowed := func(d string) bool { return strings.EqualFold(d, domain) }
	if len(p.Domains) > 0 && !slices.ContainsFunc(p.Domains, allowed) {
		return Person{}, ErrDomain
	}
	if !c.value(p.GroupsClaim, &who.Groups) {
		if one := c.text(p.GroupsClaim); one != "" {
			who.Groups = []string{one}
		}
	}
	var elsewhere map[string]jsontext.Value
	_ = c.value("_claim_names", &elsewhere)
	if _, ok := elsewhere[p.GroupsClaim]; ok && p.mapped() {
		// A person in very many groups would lose all of them.
		return Person{}, fmt.Errorf("%w: it leaves the groups out, because they are too many", ErrInvalid)
	}
	return who, nil
}

// Rights returns the group and the role that the configuration derives from a person's groups. Nil: they stay.
func (p *Provider) Rights(who *Person) (group *string, admin *bool) {
	if len(p.Groups) > 0 {
		group = new(string)
		for _, m := range p.Groups {
			if slices.Contains(who.Groups, m.From) {
				*group = m.To
				break
			}
		}
	}
	if len(p.Administrators) > 0 {
		member := slices.ContainsFunc(p.Administrators, func(g string) bool { return slices.Contains(who.Groups, g) })
		admin = &member
	}
	return group, admin
}

// unavailable wraps the cause of a conversation that failed.
func unavailable(cause error) error {
	return fmt.Errorf("%w: %s", ErrUnavailable, loggable(cause.Error()))
}

// loggable returns a text of a provider as it may stand in the log: short and on one line.
func loggable(text string) string {
	if len(text) > 300 {
		text = text[:300] + "..."
	}
	return fmt.Sprintf("%q", text)
}

// noRedirect keeps a client from following a provider to other addresses.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
