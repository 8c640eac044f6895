package admin

import (
	"slices"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/registry"
)

// checkScopes returns an error if one of the scopes is required by no route.
func checkScopes(scopes []string) error {
	all := registry.Scopes()
	if slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(all, s) }) {
		return dialogue.Invalid("scopes", "must be some of "+strings.Join(all, ", "))
	}
	return nil
}
