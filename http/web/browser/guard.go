package browser

import (
	"context"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"stagedoor/actors/tokens"
)

// Registry signs users in and out.
type Registry interface {
	Login(ctx context.Context, l tokens.Login) (cookie string, s tokens.Session, err error)
	Session(ctx context.Context, cookie string, from tokens.Sender) (tokens.Session, error)
	FinishLogin(ctx context.Context, h tokens.Halfway, code string,
		from tokens.Sender) (cookie string, s tokens.Session, err error)
	LoginExternal(ctx context.Context, e tokens.ExternalSignIn) (cookie string, s tokens.Session, err error)
	LoginPasskey(ctx context.Context, used tokens.Credential, answer tokens.Once,
		from tokens.Sender) (cookie string, s tokens.Session, err error)
	Logout(ctx context.Context, cookie string) error
}

// Options configure a Guard.
type Options struct {
	Registry Registry
	// MustEnrol reports whether a user without a second factor must set one up before anything else. Nil: none must.
	MustEnrol func(u *tokens.User) bool
	// Origin is the address of the pages in browsers, scheme://host[:port], also
	// behind a proxy that terminates TLS.
	Origin string
	// Key authenticates form tokens, and the key of sealed texts is derived from it.
	Key    []byte
	Now    func() time.Time
	Random io.Reader
}

// Guard recognises browsers. Any goroutine may use it.
type Guard struct {
	options        Options
	secure         bool   // reached by https
	session, guest string // names of cookies
	origin         *http.CrossOriginProtection
	box            cipher.AEAD // of sealed texts
}

// hostPrefix makes browsers refuse a cookie of that name from any host but this
// one, subdomains and plain http included.
const hostPrefix = "__Host-"

// New makes a Guard. Its error is about the origin or the key.
func New(o Options) (*Guard, error) {
	box, err := newBox(o.Key)
	if err != nil {
		return nil, err
	}
	g := &Guard{
		options: o,
		secure:  strings.HasPrefix(o.Origin, "https:"),
		origin:  http.NewCrossOriginProtection(),
		box:     box,
	}
	g.session, g.guest = g.CookieName("session"), g.CookieName("guest")
	return g, g.origin.AddTrustedOrigin(o.Origin)
}

// Visitor is the browser that sent a request, with the user who has signed in there.
type Visitor struct {
	// Session is zero for a browser that has not signed in.
	Session tokens.Session
	binding string
	enrols  bool
}

// SignedIn reports whether the visitor has a session that may be used.
func (v *Visitor) SignedIn() bool { return v.Session.ID != "" && !v.enrols }

// MustEnrol reports whether the visitor has a session that is good for setting up a second factor only.
func (v *Visitor) MustEnrol() bool { return v.Session.ID != "" && v.enrols }

// visitorOf returns the visitor of a session.
func (g *Guard) visitorOf(s tokens.Session) Visitor {
	enrols := !s.User.SecondFactor && !s.Strong && g.options.MustEnrol != nil && g.options.MustEnrol(&s.User)
	return Visitor{Session: s, binding: "session " + s.ID, enrols: enrols}
}

// Binding returns a text that is the same for every request of one browser until it signs in or out. It is "" if the
// browser sent no cookie by which it could be known.
func (v *Visitor) Binding() string { return v.binding }

// Visitor recognises the browser of a request.
func (g *Guard) Visitor(r *http.Request) (Visitor, error) {
	if c, err := r.Cookie(g.session); err == nil {
		s, err := g.options.Registry.Session(r.Context(), c.Value, senderOf(r))
		switch {
		case err == nil:
			return g.visitorOf(s), nil
		case !errors.Is(err, tokens.ErrNoSession):
			return Visitor{}, err
		}
	}
	if c, err := r.Cookie(g.guest); err == nil && wellFormed(c.Value) {
		return Visitor{binding: "guest " + c.Value}, nil
	}
	return Visitor{}, nil
}

// EnsureVisitor recognises the browser of a request and gives one it does not know
// something to be known by.
func (g *Guard) EnsureVisitor(w http.ResponseWriter, r *http.Request) (Visitor, error) {
	v, err := g.Visitor(r)
	if err != nil || v.binding != "" {
		return v, err
	}
	return g.newGuest(w)
}

const guestBytes = 32

// guestLife is the time for which a sign-in page can be submitted.
const guestLife = 24 * time.Hour

// newGuest gives a browser a random name, to which forms are bound before anyone has signed in.
func (g *Guard) newGuest(w http.ResponseWriter) (Visitor, error) {
	var raw [guestBytes]byte
	if _, err := io.ReadFull(g.options.Random, raw[:]); err != nil {
		return Visitor{}, fmt.Errorf("draw a guest: %w", err)
	}
	value := base64.RawURLEncoding.EncodeToString(raw[:])
	http.SetCookie(w, g.cookie(g.guest, value, guestLife))
	return Visitor{binding: "guest " + value}, nil
}

// wellFormed reports whether a cookie can be the name of a guest.
func wellFormed(guest string) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(guest)
	return err == nil && len(raw) == guestBytes
}

// purposeHalfway is that of a sealed login whose code is missing, and halfwayLife the time for typing the code.
const (
	purposeHalfway = "halfway"
	halfwayLife    = 5 * time.Minute
)

// CodeRequired is the error of SignIn if the password was right and the user has a second factor. Sealed goes into the
// form that asks for the code, and FinishSignIn takes both.
type CodeRequired struct{ Sealed string }

// Error implements error.
func (e *CodeRequired) Error() string { return "a code of the second factor is required" }

// SignIn checks credentials and opens a session for the browser of v. The browser's earlier session or guest ends, so
// that an attacker cannot plant one and find it signed in later. It returns *CodeRequired and errors of the registry.
func (g *Guard) SignIn(w http.ResponseWriter, r *http.Request, v *Visitor, l tokens.Login) (Visitor, error) {
	known, from := g.device(r), senderOf(r)
	l.From, l.Browser = from.Address, from.Browser
	if known.knows(l.Username) {
		l.Device = known.ID
	}
	value, s, err := g.options.Registry.Login(r.Context(), l)
	return g.beginUnless(w, r, v, value, s, err)
}

// SignInExternal opens a session for a person whom a provider has authenticated, as SignIn does for a password.
func (g *Guard) SignInExternal(w http.ResponseWriter, r *http.Request, v *Visitor,
	e tokens.ExternalSignIn) (Visitor, error) {
	e.From = senderOf(r)
	known := g.device(r)
	e.Device = func(username string) string {
		if !known.knows(username) {
			return ""
		}
		return known.ID
	}
	value, s, err := g.options.Registry.LoginExternal(r.Context(), e)
	return g.beginUnless(w, r, v, value, s, err)
}

// SignInPasskey opens a session for a device that has answered a challenge. It returns errors of the registry.
func (g *Guard) SignInPasskey(w http.ResponseWriter, r *http.Request, used tokens.Credential,
	answer tokens.Once) (Visitor, error) {
	value, s, err := g.options.Registry.LoginPasskey(r.Context(), used, answer, senderOf(r))
	return g.beginUnless(w, r, nil, value, s, err)
}

// beginUnless opens the session of a login unless it failed with err, which it returns. If only the code is missing,
// it returns *CodeRequired for the browser of v.
func (g *Guard) beginUnless(w http.ResponseWriter, r *http.Request, v *Visitor, cookie string, s tokens.Session,
	err error) (Visitor, error) {
	if half := (*tokens.CodeRequired)(nil); errors.As(err, &half) {
		sealed, err := g.Seal(purposeHalfway, v, halfwayLife, half.Halfway)
		if err != nil {
			return Visitor{}, err
		}
		return Visitor{}, &CodeRequired{sealed}
	}
	if err != nil {
		return Visitor{}, err
	}
	return g.begin(w, r, cookie, s), nil
}

// FinishSignIn opens the session of a login for which SignIn wanted a code. It returns ErrForged, ErrExpired and errors
// of the registry.
func (g *Guard) FinishSignIn(w http.ResponseWriter, r *http.Request, v *Visitor, sealed, code string) (Visitor, error) {
	var half tokens.Halfway
	if err := g.Unseal(purposeHalfway, v, sealed, &half); err != nil {
		return Visitor{}, err
	}
	value, s, err := g.options.Registry.FinishLogin(r.Context(), half, code, senderOf(r))
	if err != nil {
		return Visitor{}, err
	}
	return g.begin(w, r, value, s), nil
}

// begin sets the cookie of a new session. It ends the session that the browser had, removes the cookie of a guest, and
// remembers that the user has signed in on this device.
func (g *Guard) begin(w http.ResponseWriter, r *http.Request, cookie string, s tokens.Session) Visitor {
	g.remember(w, g.device(r), &s.User)
	if old, err := r.Cookie(g.session); err == nil {
		// A session left behind is no reason to refuse a new one.
		_ = g.options.Registry.Logout(r.Context(), old.Value)
	}
	http.SetCookie(w, g.cookie(g.session, cookie, s.Expires.Sub(g.options.Now())))
	http.SetCookie(w, g.cookie(g.guest, "", -1))
	return g.visitorOf(s)
}

// SignOut ends the browser's session; the visitor is a guest then.
func (g *Guard) SignOut(w http.ResponseWriter, r *http.Request) (Visitor, error) {
	if c, err := r.Cookie(g.session); err == nil {
		if err := g.options.Registry.Logout(r.Context(), c.Value); err != nil {
			return Visitor{}, err
		}
	}
	http.SetCookie(w, g.cookie(g.session, "", -1))
	return g.newGuest(w)
}

// Cookie makes a cookie of a page's own, as safe as the session's. A life below
// zero removes it.
func (g *Guard) Cookie(name, value string, life time.Duration) *http.Cookie {
	return g.cookie(g.CookieName(name), value, life)
}

// CookieName returns the name under which Cookie sets a cookie.
func (g *Guard) CookieName(name string) string {
	if g.secure {
		return hostPrefix + "stagedoor-" + name
	}
	return "stagedoor-" + name
}

// cookie returns a cookie that scripts cannot read and that other sites send only with links to a page. A life of 0
// or less removes it.
func (g *Guard) cookie(name, value string, life time.Duration) *http.Cookie {
	age := int(life / time.Second)
	if age <= 0 {
		age = -1
	}
	return &http.Cookie{
		Name:     name,
		Value:    value,
		Path:     "/",
		MaxAge:   age,
		Secure:   g.secure,
		HttpOnly: true,
		SameSite: http.SameSiteLaxMode,
	}
}
