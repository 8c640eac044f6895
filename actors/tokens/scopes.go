package tokens

import (
	"slices"
	"strings"
)

// Scopes of access tokens (imagegen-and-oauth.md 4.4).
const (
	ScopeProfile = "profile"
	ScopeBalance = "balance"
	// ScopeDeveloper is that of developer tokens; no app can be granted it.
	ScopeDeveloper = "developer"
)

// Scopes returns those an app may ask for, in the order in which they are told.
func Scopes() []string { return []string{ScopeProfile, ScopeBalance} }

// ParseScopes reads a scope parameter: words between single spaces, in any order
// and any number (RFC 6749 3.3). The result is in the order of Scopes. Absent or
// empty is nil: the caller decides the default. An unknown word is
// ErrInvalidScope.
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

// FormatScopes is the scope parameter of a list.
func FormatScopes(scopes []string) string { return strings.Join(scopes, " ") }

// ordered is the known scopes among words, each once.
func ordered(words []string) []string {
	return slices.DeleteFunc(Scopes(), func(s string) bool { return !contains(words, s) })
}

func contains(list []string, word string) bool { return slices.Contains(list, word) }

// covers tells whether every one of few is among many.
func covers(many, few []string) bool {
	return !slices.ContainsFunc(few, func(s string) bool { return !contains(many, s) })
}
