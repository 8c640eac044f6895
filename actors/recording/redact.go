package recording

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const redacted = "[redacted]"

// shortest is the length below which a value is too short to be searched for elsewhere, since it would blank out words.
const shortest = 8

// secretName matches the names of headers whose values are secrets. Proxies that sign people in pass assertions on.
var secretName = regexp.MustCompile(`(?i)^(?:.*[-_])?(?:authorization|authorization[-_]?token|auth|cookie|` +
	`api[-_]?key|key|secret|password|access[-_]?token|refresh[-_]?token|auth[-_]?token|token|credentials?|` +
	`jwt|assertion|oidc[-_]data)$`)

// secretMember matches the beginning of a member of a request's JSON in which tools and servers get credentials, up to
// its value, also in JSON that is a string itself. Its last group has the backslashes before the quotation marks. Names
// with hyphens are those of headers. Replies are not searched, because their pieces may be cut anywhere.
var secretMember = regexp.MustCompile(`(?i)\\*"(?:[a-z0-9_-]*(?:authorization|authorization[-_]?token|cookie|` +
	`api[-_]?key(?:[-_]?string)?|secret|secret[-_]?key|private[-_]?key|password|passphrase|` +
	`(?:access|refresh|auth|bearer|id|session|security)[-_]?token)|` +
	`(?:[a-z0-9]+-)+(?:key|token))\\*"\s*:\s*(\\*)"`)

// secretInURL matches the password of a URL, or a parameter of its query whose name is that of a credential or of a
// signature. Its groups are what the secret follows and the secret.
var secretInURL = regexp.MustCompile(`(?i)(://[^/?#\s"'\\@:]*:)([^/?#\s"'\\@]+)@|` +
	`((?:[?&;]|\\+u0026)(?:[a-z0-9_-]*(?:api[-_]?key|token|secret|password|signature)|` +
	`(?:[a-z0-9]+[-_])*(?:key|sig|auth))=)([^&;#\s"'<>\\]+)`)

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

// redactMembers replaces the values of members that carry secrets, and returns what they were: as they stood in the
// JSON, and as they are.
func redactMembers(t *Bytes) (secrets []string) {
	var out []byte
	rest := []byte(*t)
	for {
		m := secretMember.FindSubmatchIndex(rest)
		if m == nil {
			break
		}
		value := rest[m[1]:]
		end := endOfString(value, m[3]-m[2])
		out = append(out, rest[:m[1]]...)
		if end > 0 {
			out = append(out, redacted...)
			secrets = append(secrets, spellings(string(value[:end]))...)
		}
		rest = value[end:]
	}
	if out != nil {
		*t = append(out, rest...)
	}
	return secrets
}

// redactURLs replaces the secrets in URLs and in a query, and returns what they were.
func redactURLs(text []byte) (_ []byte, secrets []string) {
	out, end := []byte(nil), 0
	for _, m := range secretInURL.FindAllSubmatchIndex(text, -1) {
		from, to := max(m[4], m[8]), max(m[5], m[9]) // of the alternative that matched
		out = append(append(out, text[end:from]...), redacted...)
		secret := string(text[from:to])
		secrets = append(secrets, secret)
		if plain, err := url.QueryUnescape(secret); err == nil {
			secrets = append(secrets, plain)
		}
		end = to
	}
	return append(out, text[end:]...), secrets
}

// endOfString returns where the content of a string ends whose quotation marks have so many backslashes before them, as
// they have in JSON within JSON. Marks within the content have more. The content of a string without an end is all of
// text.
func endOfString(text []byte, escapes int) int {
	run := 0
	for i, c := range text {
		switch {
		case c == '\\':
			run++
			continue
		case c == '"' && run >= escapes && (run-escapes)%(2*(escapes+1)) == 0:
			return i - escapes
		}
		run = 0
	}
	return len(text)
}

// spellings returns a secret as it stands in JSON, and as it is.
func spellings(raw string) []string {
	all := []string{raw}
	for strings.Contains(raw, `\`) && len(all) < 4 { // JSON within JSON
		plain, err := strconv.Unquote(`"` + strings.ReplaceAll(raw, `\/`, `/`) + `"`)
		if err != nil {
			break
		}
		all, raw = append(all, plain), plain
	}
	return all
}

// replacer returns a function that replaces the secrets wherever they occur, the longest ones first. It takes about as
// long for many secrets as for one.
func replacer(secrets []string) func([]byte) []byte {
	for _, s := range secrets { // as they stand in JSON
		if quoted, err := json.Marshal(s); err == nil {
			secrets = append(secrets, string(quoted[1:len(quoted)-1]), strings.ReplaceAll(s, "/", `\/`))
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, s := range slices.Compact(secrets) {
		if len(s) >= shortest && s != redacted {
			pairs = append(pairs, s, redacted)
		}
	}
	all := strings.NewReplacer(pairs...)
	return func(text []byte) []byte { return []byte(all.Replace(string(text))) }
}
