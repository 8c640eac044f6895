package dialogue

import "strings"

// OwnTier returns the service tier that a client of another vendor asks for, in the words of the chat and responses
// shapes. A word that may name a tier with another price there is lost and not guessed at.
func (r *Request) OwnTier() (word string, lost bool) {
	switch r.ServiceTier {
	case "", "auto", "unspecified":
		return "", false
	case "standard", "standard_only":
		return "default", false
	}
	return "", true
}

// TierName returns a copy of the service tier that an upstream sent, or "" if it is too long for a name.
func TierName(sent string) string {
	const most = 32
	if len(sent) > most {
		return ""
	}
	return strings.Clone(sent)
}
