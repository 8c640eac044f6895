package portal

import (
	"net/http"
	"strconv"
	"strings"

	"stagedoor/http/auth"
	"stagedoor/http/envelope"
	"stagedoor/http/web/pages"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/videos"
	"stagedoor/state/identity"
)

// Below pathLive is the page of video jobs, and what its script asks for in the
// name of who is signed in: the same as /v1 for keys.
const (
	pathLive = "/live"
	pathV1   = "/v1"
)

// formHeader carries the token of the page's forms. No other site can set it.
const formHeader = "X-Stagedoor-Form"

// livePurpose is the purpose of that token.
const livePurpose = "live"

// ForwardRoutes calls handle with the routes that pages use in place of /v1. Each is served by next as the path below
// /v1: those of the page of videos with a key that can do no more than the page, the question of the first page with
// the first key.
func (p *Portal) ForwardRoutes(handle func(pattern string, h http.HandlerFunc), next http.Handler) {
	handle("POST "+pathAsk, p.ask(next))
	for _, pattern := range []string{"GET /videos", "POST /videos", "GET /videos/{id}", "DELETE /videos/{id}",
		"GET /videos/{id}/content", "POST /videos/{id}/remix", "GET /receipts/{request_id}"} {
		method, path, _ := strings.Cut(pattern, " ")
		handle(method+" "+pathLive+path, p.forward(next))
	}
}

// live is the page, for everybody: who is not signed in brings a key.
func (p *Portal) live(w http.ResponseWriter, r *http.Request) {
	visitor, err := p.options.Browser.Visitor(r)
	if err != nil {
		p.busy(w, r, err)
		return
	}
	view := &pages.Live{Models: p.options.VideoModels()}
	if visitor.SignedIn() {
		desk := pages.NewDesk(p.options.Browser, &visitor, p.options.TopUpURL())
		view.Desk, view.Token = &desk, p.options.Browser.FormToken(&visitor, livePurpose)
	}
	p.write(w, r, http.StatusOK, view)
}

// forward serves a request of the page's script in the name of who is signed in.
func (p *Portal) forward(next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key, err := p.delegate(r)
		if err != nil {
			envelope.Write(w, envelope.Plain, err)
			return
		}
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		r = auth.As(r, key)
		u := *r.URL
		u.Path, u.RawPath = pathV1+strings.TrimPrefix(u.Path, pathLive), ""
		r.URL = &u
		next.ServeHTTP(w, r)
	}
}

// delegate is the key that a request of the script is served with.
func (p *Portal) delegate(r *http.Request) (identity.Key, error) {
	visitor, err := p.options.Browser.Visitor(r)
	switch {
	case err != nil:
		return identity.Key{}, dialogue.Unavailable("unavailable", failureBusy.Message, retryUnavailable, err)
	case !visitor.SignedIn():
		return identity.Key{}, errSignedOut
	}
	// Pictures and videos are asked for by elements, which send no headers; they
	// change nothing, and other origins cannot read them.
	changes := r.Method != http.MethodGet && r.Method != http.MethodHead
	if changes && p.options.Browser.CheckForm(r, &visitor, livePurpose, r.Header.Get(formHeader)) != nil {
		return identity.Key{}, dialogue.Refusal(http.StatusForbidden, "form_not_valid",
			"this page is of another session: reload it and try again")
	}
	user := visitor.Session.User
	return identity.Key{ID: "live_" + strconv.FormatInt(user.ID, 10), Name: "page " + pathLive, User: user.Username,
		Enabled: true,
		Scopes:  []string{videos.Descriptor.Scope}}, nil
}
