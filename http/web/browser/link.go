package browser

import "net/url"

// PathLink is the page at which a one-time link is used.
const PathLink = "/signin/link"

// Link returns the address of the one-time link with this secret.
func (g *Guard) Link(secret string) string {
	return g.options.Origin + PathLink + "?" + url.Values{"link": {secret}}.Encode()
}
