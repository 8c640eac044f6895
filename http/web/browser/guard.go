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
	Logout(ctx context.Context, cookie string) error
}

// Options configure a Guard.
type Options struct {
	Registry Registry
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
}

// SignedIn tells whether the visitor has a session.
func (v *Visitor) SignedIn() bool { return v.Session.ID != "" }

// Binding is the same for every request of one browser until it signs in or
// out; "": the browser brought nothing to know it by.
func (v *Visitor) Binding() string { return v.binding }

// Visitor recognises the browser of a request.
func (g *Guard) Visitor(r *http.Request) (Visitor, error) {
	if c, err := r.Cookie(g.session); err == nil {
		s, err := g.options.Registry.Session(r.Context(), c.Value, senderOf(r))
		switch {
		case err == nil:
			return Visitor{Session: s, binding: "session " + s.ID}, nil
		case !errors.Is(err, tokens.ErrNoSession):
			return Visitor{}, err
		}
	}
	if c, err := r.Cookie(g.guest); err == nil && wellFormed(c.Value) {
		return Visitor{binding: "guest " + c.Value}, nil
	}
	return Visitor{}, nil
}

// Welcome recognises the browser of a request and gives one it does not know
// something to be known by.
func (g *Guard) Welcome(w http.ResponseWriter, r *http.Request) (Visitor, error) {
	v, err := g.Visitor(r)
	if err != nil || v.binding != "" {
		return v, err
	}
	return g.newGuest(w)
}

const guestBytes = 32

// guestLife is the time for which a sign-in page can be submitted.
const guestLife = 24 * time.Hour

func (g *Guard) newGuest(w http.ResponseWriter) (Visitor, error) {
	var raw [guestBytes]byte
	if _, err := io.ReadFull(g.options.Random, raw[:]); err != nil {
		return Visitor{}, fmt.Errorf("draw a guest: %w", err)
	}
	value := base64.RawURLEncoding.EncodeToString(raw[:])
	http.SetCookie(w, g.cookie(g.guest, value, guestLife))
	return Visitor{binding: "guest " + value}, nil
}

func wellFormed(guest string) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(guest)
	return err == nil && len(raw) == guestBytes
}

// SignIn checks credentials and opens a session. The browser's earlier session or guest
// ends, so that an attacker cannot plant one and find it signed in later.
// Errors are the registry's.
func (g *Guard) SignIn(w http.ResponseWriter, r *http.Request, l tokens.Login) (Visitor, error) {
	known, from := g.device(r), senderOf(r)
	l.From, l.Browser = from.Address, from.Browser
	if known.knows(l.Username) {
		l.Device = known.ID
	}
	value, s, err := g.options.Registry.Login(r.Context(), l)
	if err != nil {
		return Visitor{}, err
	}
	g.remember(w, known, &s.User)
	if old, err := r.Cookie(g.session); err == nil {
		// A session left behind is no reason to refuse a new one.
		_ = g.options.Registry.Logout(r.Context(), old.Value)
	}
	http.SetCookie(w, g.cookie(g.session, value, s.Expires.Sub(g.options.Now())))
	http.SetCookie(w, g.cookie(g.guest, "", -1))
	return Visitor{Session: s, binding: "session " + s.ID}, nil
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
