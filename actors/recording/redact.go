package recording

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

const redacted = "[redacted]"

// shortest is the length below which a value is too short to be searched for elsewhere, since it would blank out words.
const shortest = 8

// secretName matches the names of headers and of JSON members whose values are secrets.
var secretName = regexp.MustCompile(`(?i)^(?:.*[-_])?(?:authorization|authorization[-_]?token|cookie|api[-_]?key|key|` +
	`secret|password|access[-_]?token|refresh[-_]?token|auth[-_]?token|token|credentials?)$`)

// secretMember matches a member of a request's JSON in which tools and servers get credentials, also in JSON that is a
// string itself. Replies are not searched, because their pieces may be cut anywhere.
var secretMember = regexp.MustCompile(`(?i)(\\*"(?:authorization|authorization_token|cookie|x-api-key|api[-_]?key|` +
	`client_secret|password|access_token|refresh_token)\\*"\s*:\s*\\*")([^"\\]+)`)

// redactHeader replaces the values of headers that carry secrets, and returns what they were.
func redactHeader(h http.Header) (secrets []string) {
	for name, values := range h {
		if !secretName.MatchString(name) || strings.EqualFold(name, "Idempotency-Key") {
			continue
		}
		for i, v := range values {
			_, credentials, ok := strings.Cut(v, " ")
			if !ok {
				credentials = v
			}
			secrets = append(secrets, v, strings.TrimSpace(credentials))
			values[i] = redacted
		}
	}
	return secrets
}

// redactMembers replaces the values of members that carry secrets, and returns what they were.
func redactMembers(t *Bytes) (secrets []string) {
	for _, m := range secretMember.FindAllSubmatch(*t, -1) {
		secrets = append(secrets, string(m[2]))
	}
	if len(secrets) > 0 {
		*t = secretMember.ReplaceAll(*t, []byte("${1}"+redacted))
	}
	return secrets
}

// replacer returns a function that replaces the secrets wherever they occur, the longest ones first.
func replacer(secrets []string) func([]byte) []byte {
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	secrets = slices.Compact(secrets)
	return func(text []byte) []byte {
		for _, s := range secrets {
			if len(s) >= shortest && s != redacted {
				text = bytes.ReplaceAll(text, []byte(s), []byte(redacted))
			}
		}
		return text
	}
}
