package tokens

import (
	"net/mail"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of fields.
const (
	minPassword    = 8
	maxPassword    = 512
	maxUsername    = 64
	maxEmail       = 254
	maxName        = 100
	maxDescription = 2000
	maxRedirect    = 2048
)

// checkUsername allows letters, digits and a few signs of ASCII only. With other letters, two different names could
// look alike.
func checkUsername(name string) error {
	if name == "" || len(name) > maxUsername {
		return &FieldError{"username", "must have 1 to 64 characters"}
	}
	for _, c := range []byte(name) {
		if !isAlphanumeric(c) && !strings.ContainsRune("._@+-", rune(c)) {
			return &FieldError{"username", "may have letters, digits and . _ @ + - only"}
		}
	}
	return nil
}

// isAlphanumeric reports whether c is an ASCII letter or digit.
func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// checkEmail accepts a plain address or none. net/mail would also take an address with a name
// before it.
func checkEmail(email string) error {
	if email == "" {
		return nil
	}
	a, err := mail.ParseAddress(email)
	if err != nil || a.Address != email || len(email) > maxEmail {
		return &FieldError{"email", "must be an address like name@example.com"}
	}
	return nil
}

// checkPassword checks the length only. The upper bound limits the work of hashing.
func checkPassword(password string) error {
	if len(password) < minPassword || len(password) > maxPassword {
		return &FieldError{"password", "must have 8 to 512 bytes"}
	}
	return nil
}

// checkName checks a name that people give to apps, keys and tokens. It may have any printable characters.
func checkName(name string) error {
	n := utf8.RuneCountInString(name)
	if strings.TrimSpace(name) == "" || n > maxName || !isPlain(name, "") {
		return &FieldError{"name", "must have 1 to 100 characters and no control characters"}
	}
	return nil
}

// checkDescription checks a text for people, which may have several lines.
func checkDescription(text string) error {
	if utf8.RuneCountInString(text) > maxDescription || !isPlain(text, "\n\r\t") {
		return &FieldError{"description", "must have at most 2000 characters and no control characters"}
	}
	return nil
}

// isPlain reports whether text is UTF-8 without control characters other than those in except.
func isPlain(text, except string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && !strings.ContainsRune(except, r)
	})
}

// checkRedirects allows a list of addresses that checkRedirect allows, each once.
func checkRedirects(field string, uris []string) error {
	if len(uris) == 0 || len(uris) > maxRedirects {
		return &FieldError{field, "must have 1 to 10 addresses"}
	}
	for i, uri := range uris {
		if err := checkRedirect(uri); err != nil {
			return err
		}
		if contains(uris[:i], uri) {
			return &FieldError{field, "must not have an address twice"}
		}
	}
	return nil
}

// checkRedirect allows the URIs to which a browser may be sent with a code, which are https, or http on loopback
// (decisions, authorize). They are compared byte by byte later, so it refuses everything about which URL parsers may
// disagree.
func checkRedirect(uri string) error {
	refuse := func(rule string) error { return &FieldError{"redirect_uri", rule} }
	if uri == "" || len(uri) > maxRedirect {
		return refuse("must have 1 to 2048 bytes")
	}
	for _, c := range []byte(uri) {
		if c <= ' ' || c > '~' || strings.IndexByte(`"<>\^{|}*`+"`", c) >= 0 {
			return refuse("may have the characters of a URI only, and no wildcard")
		}
	}
	if strings.Contains(uri, "#") {
		return refuse("must have no fragment")
	}
	u, err := url.Parse(uri)
	if err != nil || u.Opaque != "" || u.Hostname() == "" {
		return refuse("must be an absolute URL")
	}
	if port := u.Port(); port != "" {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil { // browsers open no address with such a port
			return refuse("must have a port up to 65535")
		}
	}
	if u.User != nil {
		return refuse("must have no user name")
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
		return refuse("must be https, or http on localhost, 127.0.0.1 or [::1]")
	}
	return nil
}

// isLoopback reports whether host is this machine. An IPv4 address in IPv6 form does not count.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback() && !ip.Is4In6()
}

// ValidChallenge reports whether a code_challenge has the form of S256 (RFC 7636 4.2), 32 bytes in base64url.
func ValidChallenge(challenge string) bool {
	raw, err := encoding.DecodeString(challenge)
	return err == nil && len(raw) == 32 && len(challenge) == 43 // the decoder skips line ends
}

// ValidVerifier reports whether a code_verifier is well-formed (RFC 7636 4.1).
func ValidVerifier(verifier string) bool {
	if len(verifier) < 43 || len(verifier) > 128 {
		return false
	}
	for _, c := range []byte(verifier) {
		if !isAlphanumeric(c) && strings.IndexByte("-._~", c) < 0 {
			return false
		}
	}
	return true
}
