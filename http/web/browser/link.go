package browser

import (
	"net/url"

	"stagedoor/actors/tokens"
)

// PathLink is the page at which a one-time link is used.
const PathLink = "/signin/link"

const purposeLink = "one-time link"

// Link returns the address of a one-time link, which works in any browser for tokens.LinkLife.
func (g *Guard) Link(l tokens.Link) (string, error) {
	sealed, err := g.Seal(purposeLink, nil, tokens.LinkLife, l)
	if err != nil {
		return "", err
	}
	return g.options.Origin + PathLink + "?" + url.Values{"link": {sealed}}.Encode(), nil
}

// OpenLink reads the parameter of a link. It returns ErrForged or ErrExpired.
func (g *Guard) OpenLink(sealed string) (l tokens.Link, err error) {
	return l, g.Unseal(purposeLink, nil, sealed, &l)
}
