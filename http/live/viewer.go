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
	"stagedoor/state/identity"
)

// scope is the scope that a key needs to watch jobs.
const scope = "videos"

// Sessions recognises the sessions of browsers.
type Sessions interface {
	// Member returns the name of the user whose session r belongs to, or "" without one.
	Member(r *http.Request) (user string, err error)
}

// viewer is an identified client that watches.
type viewer struct {
	handlers *Handlers
	r        *http.Request
	owner    state.Owner
	key      string // the id of the key, or "" for a browser
}

// identify returns the viewer that sent r, by its key or else by the session of a browser, which cannot
// set headers here. It ignores a key in the query, which would end up in the logs of proxies.
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

// SameOrigin refuses a request of a page of another origin. Browsers send cookies with the sockets that
// any page opens, and let the page read the messages (RFC 6455 section 10.2). Clients other than
// browsers send no Origin and are permitted.
func (hs *Handlers) SameOrigin(r *http.Request) error {
	if origin := r.Header.Get("Origin"); origin != "" && !hs.own(origin, r.Host) {
		return dialogue.Refusal(http.StatusForbidden, "origin_not_allowed",
			"pages of other origins cannot connect here")
	}
	return nil
}

// recognise finds the key or the session that r was sent with. It is called again from time to time,
// because keys are revoked and users sign out while they watch.
func (v *viewer) recognise() (identity.Key, error) {
	hs := v.handlers
	if hs.options.Sessions != nil && !sendsKey(v.r) {
		user, err := hs.options.Sessions.Member(v.r)
		if err != nil {
			return identity.Key{}, err
		}
		if user != "" {
			v.owner = state.OwnerOf("", user)
			return identity.Key{}, nil
		}
	}
	key, err := hs.options.Auth.Authenticate(v.r, false)
	if err != nil {
		return key, err
	}
	v.owner, v.key = state.OwnerOf(key.ID, key.User), key.ID
	return key, hs.options.Auth.Permit(&key, v.r, scope, "")
}

// still returns an error if the viewer may not continue to watch the same jobs.
func (v *viewer) still() error {
	again := &viewer{handlers: v.handlers, r: v.r}
	if _, err := again.recognise(); err != nil {
		return err
	}
	if again.owner != v.owner {
		return dialogue.Refusal(http.StatusUnauthorized, "session_changed", "another user is signed in now")
	}
	return nil
}

// sendsKey reports whether a request has a key in one of the headers for it.
func sendsKey(r *http.Request) bool {
	return r.Header.Get("Authorization") != "" ||
		slices.ContainsFunc(auth.KeyHeaders(), func(name string) bool { return r.Header.Get(name) != "" })
}

// own reports whether origin is an origin of the gateway.
func (hs *Handlers) own(origin, host string) bool {
	if strings.EqualFold(origin, hs.options.Origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && strings.EqualFold(u.Host, host)
}
