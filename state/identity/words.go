package identity

import (
	"fmt"
	"slices"
)

// A key in memory holds words of a closed set as their index, because a string takes 16 bytes and there may be a
// hundred thousand keys. They are stored and shown as words.

// Party says who has disabled a key.
type Party uint8

// The parties that can disable a key. Each may enable what it and the earlier ones have disabled.
const (
	NoParty Party = iota
	PartyOwner
	PartyLead // of the group of the key's user
	PartyOperator
)

var parties = []string{"", "owner", "lead", "operator"}

// String returns the word for the party, or "" for NoParty.
func (p Party) String() string { return wordAt(parties, p) }

// MarshalText implements encoding.TextMarshaler.
func (p Party) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. An unknown word is an error.
func (p *Party) UnmarshalText(word []byte) (err error) {
	*p, err = indexOf[Party](parties, string(word))
	return err
}

// DisconnectPolicy says what becomes of a request when its client leaves.
type DisconnectPolicy uint8

// The policies beside the zero value, which leaves the decision to another setting.
const (
	DisconnectCancel DisconnectPolicy = 1 + iota // the request is cancelled
	DisconnectFinish                             // it runs to its end
	DisconnectDetach                             // the same, and its stream can be resumed
)

var disconnectPolicies = []string{"", "cancel", "finish", "detach"}

// DisconnectPolicyOf returns the policy with a word. "" is the zero value. An unknown word is an error.
func DisconnectPolicyOf(word string) (DisconnectPolicy, error) {
	return indexOf[DisconnectPolicy](disconnectPolicies, word)
}

// String returns the word for the policy, or "" for the zero value.
func (p DisconnectPolicy) String() string { return wordAt(disconnectPolicies, p) }

// MarshalText implements encoding.TextMarshaler.
func (p DisconnectPolicy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. An unknown word is an error.
func (p *DisconnectPolicy) UnmarshalText(word []byte) (err error) {
	*p, err = DisconnectPolicyOf(string(word))
	return err
}

// wordAt returns the word with an index, or a number for an index without one.
func wordAt[T ~uint8](words []string, i T) string {
	if int(i) < len(words) {
		return words[i]
	}
	return fmt.Sprint(uint8(i))
}

// indexOf returns the index of a word.
func indexOf[T ~uint8](words []string, word string) (T, error) {
	if i := slices.Index(words, word); i >= 0 {
		return T(i), nil
	}
	return 0, fmt.Errorf("%q is none of %q", word, words[1:])
}
