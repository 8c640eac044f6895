package pages

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"stagedoor/actors/tokens"
)

// Want is a scope in words.
type Want struct{ Name, Text string }

var wants = map[string]Want{
	tokens.ScopeProfile: {"Your profile", "username and e-mail address"},
	tokens.ScopeBalance: {"Your balance", "what is left and what was spent"},
}

// Wants are the app's scopes in words.
func (a *App) Wants() []Want {
	var all []Want
	for _, s := range a.Scopes {
		all = append(all, wants[s])
	}
	return all
}

// Initial returns a letter that stands for the app. An app never has a picture here,
// because it could show another one's.
func (a *App) Initial() string {
	at := strings.IndexFunc(a.Name, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
	if at < 0 {
		return "?"
	}
	r, _ := utf8.DecodeRuneInString(a.Name[at:])
	return string(unicode.ToUpper(r))
}
