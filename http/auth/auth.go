// Package auth identifies requests by their gateway keys and checks what the keys permit. It accepts a key in every
// header in which an SDK sends it. Handlers of model requests call these, in this order:
//
//	Identify  finds the key and checks its scope
//	Admit     counts the request against the limits of the key, before the body is read
//	Permit    checks the model, once the body is read
//	Charge    counts the estimated tokens against the limit of the key
//
// EndRevoked ends requests in flight whose keys are revoked, expired or disabled. Errors are of the type
// *dialogue.Error, and Refuse writes them.
//
// # Concurrency
//
// An Authenticator is safe for concurrent use. It reads the state without locks, so a key that is revoked is refused
// from the moment at which its command is durable. Requests that were admitted before are ended by EndRevoked.
//
// # Guesses
//
// Keys have 256 random bits, so guessing is hopeless, and a wrong key costs its sender only time. An address that
// sends many of them gets 429 in place of 401 (LimitFailures). A request with a known key is never refused for the
// failures of its address, because many people may share one.
//
// # Files
//
//	auth.go identified.go actor.go    the sender of a request, and the actor that the audit log names
//	admit.go                          limits of keys, in the order above
//	failures.go attempts.go           addresses that send unknown keys
//	revisions.go revoked.go           how revoked keys end requests in flight
//	thismachine.go                    whether a request comes from this machine and through no proxy
package auth

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/registry"
	"stagedoor/state"
	"stagedoor/state/identity"
)

// maxKey bounds the work of hashing for an unknown client.
const maxKey = 512

// Keys is the store of keys. *identity.Access implements it.
type Keys interface {
	Key(hash state.Hash) (identity.Key, bool)
	KeyByID(id string) (identity.Key, error)
	// Blocked reports whether an account belongs to a disabled user.
	Blocked(account string) bool
	// UserPermits checks a scope and a model against the ceilings of an account's user and group.
	UserPermits(account, scope, model string) error
	// AccessVersion changes with every change of a key, a user or a group. The channel of WatchAccess
	// is closed at the next change.
	AccessVersion() uint64
	WatchAccess() <-chan struct{}
}

// Authenticator looks up keys in the configuration and in the store. It is safe for concurrent use.
type Authenticator struct {
	fixed atomic.Pointer[map[state.Hash]identity.Key]
	store Keys
	now   func() time.Time
	// failed counts the unknown keys that each address sends.
	failed *failures
	watch  *watch
}

// New returns an Authenticator. If store is nil, only the keys of SetFixed are known.
func New(store Keys, now func() time.Time) *Authenticator {
	a := &Authenticator{store: store, now: now, failed: newFailures(), watch: newWatch()}
	a.SetFixed(nil)
	return a
}

// SetFixed replaces the keys of the configuration. Requests with a key that is no longer among them
// end.
func (a *Authenticator) SetFixed(keys []identity.Key) {
	byHash := make(map[state.Hash]identity.Key, len(keys))
	for _, k := range keys {
		byHash[k.Hash] = k
	}
	a.fixed.Store(&byHash)
	a.watch.revisions.count.Add(1)
	a.watch.look()
}

// HasOthers reports whether a key of the configuration belongs to another owner.
func (a *Authenticator) HasOthers(owner state.Owner) bool {
	for _, k := range *a.fixed.Load() {
		if state.OwnerOf(k.ID, k.User) != owner {
			return true
		}
	}
	return false
}

// LimitFailures sets how many unknown keys an address may send in a minute before it gets a 429.
// Zero, the initial value, means no limit.
func (a *Authenticator) LimitFailures(most int) { a.failed.most.Store(int64(most)) }

// Authenticate returns the key that r was sent with, or the key that As has set. It does not check what the key
// permits. allowQuery says whether the key may be sent as ?key=. It returns an error if no key or two different ones
// were sent, the key is unknown or its user is disabled. The error is a 429 if the address of r has sent too many
// unknown keys, which it counts.
func (a *Authenticator) Authenticate(r *http.Request, allowQuery bool) (identity.Key, error) {
	if key, ok := identifiedAs(r); ok {
		return key, nil
	}
	secret, err := secretOf(r, allowQuery)
	if err != nil {
		return identity.Key{}, err
	}
	key, ok := a.known(secret)
	switch {
	case ok && a.store != nil && a.store.Blocked(key.User):
		return identity.Key{}, userDisabled()
	case ok:
		return key, nil
	}
	if wait := a.failed.add(Remote(r), a.now()); wait > 0 {
		return identity.Key{}, tooManyFailures(wait)
	}
	return identity.Key{}, unauthorized("invalid_api_key", "unknown API key")
}

// ByID returns the key of a request that was identified earlier, for work that continues after the
// request, such as background responses. It returns an error if the key cannot be used any more.
func (a *Authenticator) ByID(id string) (identity.Key, error) {
	key, ok := a.withID(id)
	switch {
	case !ok:
		return identity.Key{}, unauthorized("invalid_api_key", "the API key does not exist any more")
	case a.store != nil && a.store.Blocked(key.User):
		return identity.Key{}, userDisabled()
	}
	return key, nil
}

// withID returns the key with an id: one of the configuration, or else one of the state.
func (a *Authenticator) withID(id string) (identity.Key, bool) {
	for _, k := range *a.fixed.Load() {
		if k.ID == id {
			return k, true
		}
	}
	if a.store == nil {
		return identity.Key{}, false
	}
	key, err := a.store.KeyByID(id)
	return key, err == nil
}

// known returns the key with a secret: one of the configuration, or else one of the state. A secret that is longer than
// any key is not hashed, because anyone can send it.
func (a *Authenticator) known(secret string) (identity.Key, bool) {
	if len(secret) > maxKey {
		return identity.Key{}, false
	}
	hash := state.HashSecret(secret)
	key, ok := (*a.fixed.Load())[hash]
	if !ok && a.store != nil {
		key, ok = a.store.Key(hash)
	}
	return key, ok
}

// KeyHeaders returns the headers, besides Authorization, in which a client may send its key. The list must not be
// changed.
var KeyHeaders = sync.OnceValue(registry.KeyHeaders)

// noKeySent returns the message for a request without a key, which names all headers in which a client can send one.
var noKeySent = sync.OnceValue(func() string {
	return "no API key was sent: use the header Authorization: Bearer KEY, or one of " + strings.Join(KeyHeaders(), ", ")
})

// secretOf collects the key from every place where a client may send it. It refuses two different
// keys, because it cannot know which one was meant.
func secretOf(r *http.Request, allowQuery bool) (string, error) {
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
	for _, name := range KeyHeaders() {
		for _, v := range h[name] {
			take(v)
		}
	}
	if allowQuery && r.URL.RawQuery != "" {
		for _, v := range r.URL.Query()["key"] {
			take(v)
		}
	}
	switch {
	case found == "":
		return "", unauthorized("missing_api_key", noKeySent())
	case clash:
		return "", unauthorized("invalid_api_key", "two different API keys were sent in one request")
	}
	return found, nil
}

// bearer returns the token of an Authorization header, or "" for other schemes.
func bearer(v string) string {
	scheme, token, ok := strings.Cut(strings.TrimLeft(v, " "), " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return token
}

// userDisabled returns the error for a key whose user is disabled.
func userDisabled() *dialogue.Error { return unusable(errors.New("its user is disabled")) }

// unusable returns the error for a key that exists and cannot be used.
func unusable(why error) *dialogue.Error {
	return unauthorized("invalid_api_key", "the API key cannot be used: "+why.Error())
}

// unauthorized returns a 401.
func unauthorized(code, message string) *dialogue.Error {
	return dialogue.Refusal(http.StatusUnauthorized, code, message)
}

// Permit returns an error unless key can be used now, and the key, its user and the user's group permit the scope, the
// model and the address of r. An empty scope or model is not checked. Permit also tells EndRevoked when the key
// expires.
func (a *Authenticator) Permit(key *identity.Key, r *http.Request, scope, model string) error {
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
	case errors.Is(err, identity.ErrKeyRevoked), errors.Is(err, identity.ErrKeyExpired),
		errors.Is(err, identity.ErrKeyDisabled):
		return unusable(err)
	}
	e := dialogue.Refusal(http.StatusForbidden, "permission_denied", "the API key does not permit this: "+err.Error())
	switch {
	case errors.Is(err, identity.ErrModelForbidden):
		e.Code, e.Param = "model_not_allowed", "model"
	case errors.Is(err, identity.ErrScopeForbidden):
		e.Message += " " + scope
	}
	return e
}

// Remote returns the address of the peer. It ignores forwarded headers, which clients can forge.
func Remote(r *http.Request) netip.Addr {
	if ap, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		return ap.Addr().Unmap()
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	addr, _ := netip.ParseAddr(host)
	return addr.Unmap()
}
