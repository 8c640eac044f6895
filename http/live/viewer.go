package live

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"stagedoor/http/auth"
	"stagedoor/http/overload"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
)

// scope is what a key needs to watch jobs.
const scope = "videos"

// Sessions recognises browsers.
type Sessions interface {
	// Member is the name of the user who is signed in where r comes from; "":
	// nobody is.
	Member(r *http.Request) (user string, err error)
}

// viewer is who watches.
type viewer struct {
	handlers *Handlers
	r        *http.Request
	owner    state.Owner
	key      string // id of the key; "": a browser
}

// identify finds out who asks: by key if one was sent, else by the session of a
// browser, which can set no headers here. A key in the query is not looked at: it
// would be in every log on the way.
func (hs *Handlers) identify(w http.ResponseWriter, r *http.Request) (*viewer, error) {
	v := &viewer{handlers: hs, r: r}
	key, err := v.recognise()
	if err == nil {
		err = hs.SameOrigin(r)
	}
	switch {
	case err != nil:
		return nil, err
	case v.key == "":
		return v, overload.Claim(r.Context(), v.owner)
	}
	return v, auth.AdmitWatcher(w, r, hs.options.Limits, &key, hs.options.Now())
}

// SameOrigin refuses what a page of another origin asks: browsers send cookies
// with whatever any page opens, and a socket's answers are not kept from it
// (RFC 6455 section 10.2). Clients that are no browsers name no origin.
func (hs *Handlers) SameOrigin(r *http.Request) error {
	if origin := r.Header.Get("Origin"); origin != "" && !hs.own(origin, r.Host) {
		return &dialogue.Error{Status: http.StatusForbidden, Type: dialogue.TypePermission, Code: "origin_not_allowed",
			Message: "pages of other origins cannot watch here"}
	}
	return nil
}

// recognise finds the key, or the session, that r was sent with. It is asked again now and then: keys are revoked and
// people sign out while they watch.
func (v *viewer) recognise() (state.Key, error) {
	d := v.handlers
	if d.options.Sessions != nil && !sendsKey(v.r) {
		user, err := d.options.Sessions.Member(v.r)
		if err != nil {
			return state.Key{}, err
		}
		if user != "" {
			v.owner = state.OwnerOf("", user)
			return state.Key{}, nil
		}
	}
	key, err := d.options.Auth.Authenticate(v.r, false)
	if err != nil {
		return key, err
	}
	v.owner, v.key = state.OwnerOf(key.ID, key.User), key.ID
	return key, d.options.Auth.Permit(&key, v.r, scope, "")
}

// still fails if the viewer may not watch any more what it watches.
func (v *viewer) still() error {
	again := &viewer{handlers: v.handlers, r: v.r}
	if _, err := again.recognise(); err != nil {
		return err
	}
	if again.owner != v.owner {
		return &dialogue.Error{Status: http.StatusUnauthorized, Type: dialogue.TypeAuthentication, Code: "session_changed",
			Message: "somebody else is signed in now"}
	}
	return nil
}

// sendsKey reports whether a request has a key in one of the headers for it.
func sendsKey(r *http.Request) bool {
	return r.Header.Get("Authorization") != "" ||
		slices.ContainsFunc(auth.KeyHeaders, func(name string) bool { return r.Header.Get(name) != "" })
}

// own reports whether an origin is the gateway's.
func (hs *Handlers) own(origin, host string) bool {
	if strings.EqualFold(origin, hs.options.Origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && strings.EqualFold(u.Host, host)
}
