package auth

import (
	"context"
	"net/http"

	"stagedoor/state"
)

type identified struct{}

// As is r as if it had been sent with a key, whatever keys it has: for whoever has
// found out otherwise who asks, and serves him with a door that is for keys.
func As(r *http.Request, key state.Key) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), identified{}, key))
}

// identifiedAs is the key that As has said.
func identifiedAs(r *http.Request) (state.Key, bool) {
	key, ok := r.Context().Value(identified{}).(state.Key)
	return key, ok
}
