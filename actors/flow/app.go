package flow

import (
	"net/http"
	"strings"
)

// maxApp bounds the name of an app, which clients choose.
const maxApp = 64

// AppOf returns the name of the program that sent a request: its X-Title, which clients of several gateways send, or
// the first product of its User-Agent without the version. It is "browser" for browsers and "" if the client does not
// say. The log of requests groups spending by it. It proves nothing, because clients choose it.
func AppOf(h http.Header) string {
	name := strings.TrimSpace(h.Get("X-Title"))
	if name == "" {
		name, _, _ = strings.Cut(strings.TrimSpace(h.Get("User-Agent")), " ")
		name, _, _ = strings.Cut(name, "/")
	}
	if name == "Mozilla" {
		return "browser"
	}
	name = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return -1
		}
		return c
	}, name[:min(len(name), maxApp)])
	return strings.Clone(strings.ToValidUTF8(name, "")) // so that it does not keep the other headers in memory
}
