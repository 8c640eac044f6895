package auth

import (
	"context"
	"net/http"

	"stagedoor/state/identity"
)

type identified struct{}

// As returns a copy of r that is authenticated as key and ignores r's own credentials. The account
// pages use it to call the /v1 handlers for a signed-in user.
func As(r *http.Request, key identity.Key) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), identified{}, key))
}

// identifiedAs returns the key that As has set.
func identifiedAs(r *http.Request) (identity.Key, bool) {
	key, ok := r.Context().Value(identified{}).(identity.Key)
	return key, ok
}
