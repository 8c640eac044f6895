package catalog

import (
	"slices"
	"strings"
)

// Conditions is a set of reasons for which a request moves on to a fallback. An entry without conditions has the empty
// set.
type Conditions uint16

// The conditions that an entry of a fallback may name.
const (
	// OnContextLength means that the prompt does not fit the context window, by the answer of a provider or because
	// the gateway left a target out for that reason.
	OnContextLength Conditions = 1 << iota
	// OnContentFilter means that the provider's moderation refused the request, or the whole reply.
	OnContentFilter
	// OnUnsupported means that the gateway left a target out that cannot read the media in the prompt, or call
	// tools.
	OnUnsupported
	// OnRateLimited means a 429, or that the provider's limit in the configuration is reached.
	OnRateLimited
	// OnOverloaded means that the provider sheds load.
	OnOverloaded
	// OnServerError means that the provider failed, or that the connection broke before its reply.
	OnServerError
	// OnTimeout means that the provider was too slow.
	OnTimeout
	// OnUnavailable means that the provider was not reached, or gets no requests because it failed before.
	OnUnavailable
	// OnCredential means that the provider refused the gateway's key or account.
	OnCredential
)

// conditionNames are the names in the configuration, in the order of the constants.
var conditionNames = []string{"context_length_exceeded", "content_filter", "unsupported", "rate_limited", "overloaded",
	"server_error", "timeout", "unavailable", "credential"}

// ConditionNames returns the names of all conditions. The caller must not change the slice.
func ConditionNames() []string { return conditionNames }

// ParseConditions returns the set of the conditions that names name. It ignores unknown names, which the configuration
// has refused before.
func ParseConditions(names []string) Conditions {
	var set Conditions
	for _, name := range names {
		if i := slices.Index(conditionNames, name); i >= 0 {
			set |= 1 << i
		}
	}
	return set
}

// String returns the names of the conditions, separated by commas.
func (c Conditions) String() string {
	var names []string
	for i, name := range conditionNames {
		if c&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}
