package pages

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"unicode"
	"unicode/utf8"

	"stagedoor/actors/tokens"
)

// ScopeText describes a scope to the user who is asked to grant it: what the app sees, and what exactly that is.
type ScopeText struct{ Name, Text string }

var scopeTexts = map[string]ScopeText{
	tokens.ScopeProfile: {"Your profile", "username and e-mail address"},
	tokens.ScopeBalance: {"Your balance", "what is left and what was spent"},
}

// ScopeTextOf describes a scope of tokens.Scopes.
func ScopeTextOf(scope string) ScopeText { return scopeTexts[scope] }

// ScopeTexts describes the app's scopes.
func (a *App) ScopeTexts() []ScopeText {
	var all []ScopeText
	for _, s := range a.Scopes {
		all = append(all, scopeTexts[s])
	}
	return all
}

// Initial returns a letter that stands for an app without a logo.
func (a *App) Initial() string {
	at := strings.IndexFunc(a.Name, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
	if at < 0 {
		return "?"
	}
	r, _ := utf8.DecodeRuneInString(a.Name[at:])
	return string(unicode.ToUpper(r))
}

// PathLogos begins the addresses of logos; the client_id follows.
const PathLogos = "/api/oauth2/logos/"

// LogoPath returns the address of an app's logo, or "" if it has none. The address changes with the logo, so that
// browsers may keep each one.
func LogoPath(a *tokens.App) string {
	if a.Logo == nil {
		return ""
	}
	sum := sha256.Sum256(a.Logo)
	return PathLogos + a.ClientID + "?v=" + base64.RawURLEncoding.EncodeToString(sum[:6])
}
