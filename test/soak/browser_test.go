package soak

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
)

// browser walks the gateway's pages for one user. It keeps its cookies over all
// kills, as a browser does.
type browser struct {
	gateway  *gateway
	http     *http.Client
	username string
	password string
	signedIn bool
}

// newBrowser returns a browser without cookies.
func newBrowser(g *gateway, username, password string) (*browser, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	return &browser{gateway: g, http: newHTTP(jar), username: username, password: password}, nil
}

var (
	formAction = regexp.MustCompile(`<form method="post" action="([^"]+)"`)
	formHidden = regexp.MustCompile(`<input type="hidden" name="(id|token)" value="([^"]*)">`)
)

// form returns the address and the hidden fields of the first form of a page, or false if there is none.
func form(page []byte) (action string, fields url.Values, ok bool) {
	at := formAction.FindSubmatchIndex(page)
	if at == nil {
		return "", nil, false
	}
	fields = url.Values{}
	for _, m := range formHidden.FindAllSubmatch(page[at[0]:], 2) {
		fields.Set(string(m[1]), html.UnescapeString(string(m[2])))
	}
	return string(page[at[2]:at[3]]), fields, true
}

// open loads a page and follows nothing.
func (b *browser) open(ctx context.Context, address string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return answer{}, err
	}
	return call(b.http, r)
}

// maxPages bounds a walk: sign-in, consent, and a redirect after each.
const maxPages = 6

// authorize goes from an app's address to its callback and returns what is asked
// of the callback. A user who signed in once is not asked again: sessions are
// acknowledged writes, too.
func (b *browser) authorize(ctx context.Context, address, callback string) (url.Values, error) {
	a, err := b.open(ctx, address)
	for range maxPages {
		if err != nil {
			return nil, err
		}
		to := a.header.Get("Location")
		switch {
		case strings.HasPrefix(to, callback):
			b.signedIn = true
			u, err := url.Parse(to)
			if err != nil {
				return nil, err
			}
			return u.Query(), nil
		case to != "":
			a, err = b.open(ctx, b.gateway.url+to)
			continue
		}
		action, fields, ok := form(a.body)
		if !ok {
			return nil, fmt.Errorf("a page without a form: %s", &a)
		}
		if strings.Contains(string(a.body), `name="password"`) {
			if b.signedIn {
				return nil, fmt.Errorf("the session of %s is lost", b.username)
			}
			fields.Set("username", b.username)
			fields.Set("password", b.password)
		} else {
			fields.Set("decision", "allow")
		}
		a, err = b.gateway.postForm(ctx, b.http, action, fields)
	}
	return nil, fmt.Errorf("the pages do not end: %s", &a)
}
