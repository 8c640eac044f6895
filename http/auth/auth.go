// Package auth finds out who asks: it takes the gateway key from whichever
// header the client's SDK puts it in and looks it up (gateway.md 5,
// decisions.md "Authentication"). What the key may do is asked of its record.
package auth

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/registry"
	"stagedoor/state"
)

// maxKey bounds what is hashed for a caller nobody knows yet.
const maxKey = 512

// Keys looks keys up by the hash of their secret.
type Keys interface {
	Key(hash state.Hash) (state.Key, bool)
	KeyByID(id string) (state.Key, error)
	// Blocked tells whether an account is that of a disabled user.
	Blocked(account string) bool
	// UserPermits checks a scope and a model against the ceilings of an account's user and group.
	UserPermits(account, scope, model string) error
	// KeyEra changes with every change of a key, a user or a group, and WatchAccess is
	// closed by the next one.
	KeyEra() uint64
	WatchAccess() <-chan struct{}
}

// Authenticator knows the keys of the configuration and those of the store.
type Authenticator struct {
	fixed atomic.Pointer[map[state.Hash]state.Key]
	store Keys
	now   func() time.Time
	// failed are the addresses that try keys out.
	failed *failures
	watch  *watch
}

// New makes an Authenticator. store may be nil.
func New(store Keys, now func() time.Time) *Authenticator {
	a := &Authenticator{store: store, now: now, failed: newFailures(), watch: newWatch()}
	a.SetFixed(nil)
	return a
}

// SetFixed replaces the keys of the configuration, at once for all requests.
func (a *Authenticator) SetFixed(keys []state.Key) {
	byHash := make(map[state.Hash]state.Key, len(keys))
	for _, k := range keys {
		byHash[k.Hash] = k
	}
	a.fixed.Store(&byHash)
	a.watch.era.count.Add(1)
	a.watch.look()
}

// LimitFailures sets how many unknown keys an address may send in a minute
// before it is told to wait; 0: any number. At first there is no limit.
func (a *Authenticator) LimitFailures(most int) { a.failed.most.Store(int64(most)) }

// Authenticate returns the key that r was sent with. query says that ?key= is
// a place for it, as it is for the third shape.
func (a *Authenticator) Authenticate(r *http.Request, query bool) (state.Key, error) {
	if key, ok := identifiedAs(r); ok {
		return key, nil
	}
	secret, err := secretOf(r, query)
	if err != nil {
		return state.Key{}, err
	}
	key, ok := a.known(secret)
	switch {
	case ok && a.store != nil && a.store.Blocked(key.User):
		return state.Key{}, userDisabled()
	case ok:
		return key, nil
	}
	if wait := a.failed.add(Remote(r), a.now()); wait > 0 {
		return state.Key{}, tooManyFailures(wait)
	}
	return state.Key{}, unauthorized("invalid_api_key", "the API key is not known here")
}

// ByID returns a key that a request was sent with earlier, for work that goes on
// without it.
func (a *Authenticator) ByID(id string) (state.Key, error) {
	key, ok := a.withID(id)
	switch {
	case !ok:
		return state.Key{}, unauthorized("invalid_api_key", "the API key is not known here any more")
	case a.store != nil && a.store.Blocked(key.User):
		return state.Key{}, userDisabled()
	}
	return key, nil
}

func (a *Authenticator) withID(id string) (state.Key, bool) {
	for _, k := range *a.fixed.Load() {
		if k.ID == id {
			return k, true
		}
	}
	if a.store == nil {
		return state.Key{}, false
	}
	key, err := a.store.KeyByID(id)
	return key, err == nil
}

func (a *Authenticator) known(secret string) (state.Key, bool) {
	if len(secret) > maxKey {
		return state.Key{}, false
	}
	hash := state.HashSecret(secret)
	key, ok := (*a.fixed.Load())[hash]
	if !ok && a.store != nil {
		key, ok = a.store.Key(hash)
	}
	return key, ok
}

// KeyHeaders are the headers, besides Authorization, in which a client may send its key. They must
// not be changed.
var KeyHeaders = registry.KeyHeaders()

var noKeySent = "no API key was sent: use the header Authorization: Bearer KEY, or one of " + strings.Join(KeyHeaders, ", ")

// secretOf collects the key from every place a client may put it. Two
// different ones are refused: it would be a guess which was meant.
func secretOf(r *http.Request, query bool) (string, error) {
	found := ""
	clash := false
	take := func(v string) {
		v = strings.TrimSpace(v)
		if v == "" {
			return
		}
		clash = clash || found != "" && found != v
		found = v
	}
	h := r.Header
	for _, v := range h["Authorization"] {
		take(bearer(v))
	}
	for _, name := range KeyHeaders {
		for _, v := range h[name] {
			take(v)
		}
	}
	if query && r.URL.RawQuery != "" {
		for _, v := range r.URL.Query()["key"] {
			take(v)
		}
	}
	switch {
	case found == "":
		return "", unauthorized("missing_api_key", noKeySent)
	case clash:
		return "", unauthorized("invalid_api_key", "two different API keys were sent in one request")
	}
	return found, nil
}

// bearer is the token of an Authorization header, "" for other schemes.
func bearer(v string) string {
	scheme, token, ok := strings.Cut(strings.TrimLeft(v, " "), " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return token
}

func userDisabled() *dialogue.Error { return unusable(errors.New("its user is disabled")) }

// unusable is the error of a key that is known and cannot be used.
func unusable(why error) *dialogue.Error {
	return unauthorized("invalid_api_key", "the API key cannot be used: "+why.Error())
}

func unauthorized(code, message string) *dialogue.Error {
	return &dialogue.Error{Status: http.StatusUnauthorized, Type: dialogue.TypeAuthentication, Code: code, Message: message}
}

// Permit checks that key may use scope, and model if it is not "", from where r
// comes.
func (a *Authenticator) Permit(key *state.Key, r *http.Request, scope, model string) error {
	var from netip.Addr
	if len(key.AllowIPs) > 0 {
		from = Remote(r)
	}
	var now time.Time
	if !key.Expires.IsZero() {
		now = a.now()
	}
	err := key.Permits(scope, model, from, now)
	if err == nil && a.store != nil {
		err = a.store.UserPermits(key.User, scope, model)
	}
	switch {
	case err == nil:
		a.expires(key)
		return nil
	case errors.Is(err, state.ErrKeyRevoked), errors.Is(err, state.ErrKeyExpired), errors.Is(err, state.ErrKeyDisabled):
		return unusable(err)
	}
	e := &dialogue.Error{Status: http.StatusForbidden, Type: dialogue.TypePermission, Code: "permission_denied",
		Message: "the API key does not permit this: " + err.Error()}
	switch {
	case errors.Is(err, state.ErrModelForbidden):
		e.Code, e.Param = "model_not_allowed", "model"
	case errors.Is(err, state.ErrScopeForbidden):
		e.Message += " " + scope
	}
	return e
}

// Remote is the address of the peer. Forwarded headers are not believed.
func Remote(r *http.Request) netip.Addr {
	if ap, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		return ap.Addr().Unmap()
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	addr, _ := netip.ParseAddr(host)
	return addr.Unmap()
}
