package browser

import "net/url"

// PathLink is the page at which a one-time link is used.
const PathLink = "/signin/link"

// PathSecondFactor is the page on which a second factor is set up. A visitor who must do that first is sent there.
const PathSecondFactor = "/account/second-factor"

// Link returns the address of the one-time link with this secret.
func (g *Guard) Link(secret string) string {
	return g.options.Origin + PathLink + "?" + url.Values{"link": {secret}}.Encode()
}
