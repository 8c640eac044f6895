package tokens

import (
	"slices"
	"strings"
)

// Scopes of access tokens.
const (
	ScopeProfile = "profile"
	ScopeBalance = "balance"
	// ScopeDeveloper is the scope of developer tokens. No app can be granted it.
	ScopeDeveloper = "developer"
)

// Scopes returns the scopes that an app may request, in the order in which they are listed.
func Scopes() []string { return []string{ScopeProfile, ScopeBalance} }

// ParseScopes reads a scope parameter of words between single spaces, in any order and number (RFC 6749 3.3). The
// result is in the order of Scopes. It is nil for an empty parameter, whose default the caller decides. An unknown
// word is ErrInvalidScope.
func ParseScopes(parameter string) ([]string, error) {
	if parameter == "" {
		return nil, nil
	}
	words := strings.Split(parameter, " ")
	for _, word := range words {
		if !contains(Scopes(), word) {
			return nil, ErrInvalidScope
		}
	}
	return ordered(words), nil
}

// FormatScopes returns the scope parameter of a list.
func FormatScopes(scopes []string) string { return strings.Join(scopes, " ") }

// ordered returns the known scopes among words, each once.
func ordered(words []string) []string {
	return slices.DeleteFunc(Scopes(), func(s string) bool { return !contains(words, s) })
}

func contains(list []string, word string) bool { return slices.Contains(list, word) }

// covers reports whether all of few are among many.
func covers(many, few []string) bool {
	return !slices.ContainsFunc(few, func(s string) bool { return !contains(many, s) })
}
