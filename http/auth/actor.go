package auth

import (
	"net/http"

	"stagedoor/state"
)

// Ways of changes, for state.Actor.Via.
const (
	ViaPage    = "page"
	ViaAPI     = "api"
	ViaOAuth   = "oauth"
	ViaCommand = "command"
)

// Acting returns a handler whose changes of the state are recorded under the sender of the request: an actor of a kind
// that changes things in some way, with its address and the id of the request. Every handler that can change what the
// audit log covers is wrapped in it. Handlers of requests to models are not, because it costs two allocations.
func Acting(kind state.ActorKind, via string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a := state.Actor{Kind: kind, Via: via, Request: w.Header().Get("X-Request-Id")}
		if from := Remote(r); from.IsValid() {
			a.Address = from.String()
		}
		next(w, r.WithContext(state.WithActor(r.Context(), a)))
	}
}

// AsUser returns the request of a client that has turned out to be a user.
func AsUser(r *http.Request, username string) *http.Request {
	ctx := r.Context()
	return r.WithContext(state.WithActor(ctx, state.ActorOf(ctx).As(state.ActorUser, username)))
}
