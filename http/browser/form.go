package browser

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
)

// ErrForged: the form was sent by another site, or was drawn for another browser
// or another purpose.
var ErrForged = errors.New("the form does not come from this browser's page")

// FormToken goes into a form drawn for v. purpose tells one form from another.
func (g *Guard) FormToken(v *Visitor, purpose string) string {
	mac := hmac.New(sha256.New, g.options.Key)
	for _, part := range []string{"form", v.binding, purpose} {
		// Lengths keep two pairs of parts from being one text.
		mac.Write([]byte{byte(len(part) >> 8), byte(len(part))})
		mac.Write([]byte(part))
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// CheckForm is ErrForged unless r is a form that was drawn for v.
func (g *Guard) CheckForm(r *http.Request, v *Visitor, purpose, token string) error {
	if g.foreign(r) || v.binding == "" || !hmac.Equal([]byte(token), []byte(g.FormToken(v, purpose))) {
		return ErrForged
	}
	return nil
}

// foreign tells whether the browser says that another site sent r. A page whose
// address is told to nobody (Referrer-Policy) posts with the origin null, and on
// plain http outside of loopback browsers say nothing else: there the token is
// what counts.
func (g *Guard) foreign(r *http.Request) bool {
	if !g.secure && r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "null" {
		return false
	}
	return g.origin.Check(r) != nil
}
