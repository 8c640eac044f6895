package portal

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"stagedoor/http/auth"
	"stagedoor/http/envelope"
	"stagedoor/http/web/pages"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/chat"
	"stagedoor/providers/shapes/images"
	"stagedoor/providers/shapes/responses"
	"stagedoor/providers/shapes/videos"
	"stagedoor/state/identity"
)

const (
	pathLive   = "/live"
	pathChat   = "/chat"
	pathImages = "/images"
	pathV1     = "/v1"
)

// formHeader carries the token of the page's forms. No other site can set it.
const formHeader = "X-Stagedoor-Form"

// A scriptedPage is a page whose script uses the routes of /v1 in the name of the signed-in user.
type scriptedPage struct {
	path     string   // of the page
	prefix   string   // in place of /v1
	purpose  string   // of the token that its requests bring in formHeader
	scopes   []string // that its requests have, and no other
	patterns []string
	// keeps says that the page keeps conversations (keptRoutes).
	keeps bool
}

var (
	livePage = scriptedPage{path: pathLive, prefix: pathLive, purpose: "live",
		scopes: []string{videos.Descriptor.Scope},
		patterns: []string{"GET /videos", "POST /videos", "GET /videos/{id}", "DELETE /videos/{id}",
			"GET /videos/{id}/content", "POST /videos/{id}/remix", "GET /receipts/{request_id}"}}
	chatPage = scriptedPage{path: pathChat, prefix: pathChat + "/api", purpose: "chat", keeps: true,
		scopes:   []string{chat.Shape.Scope, responses.Shape.Scope},
		patterns: []string{"POST /chat/completions", "GET /receipts/{request_id}"}}
	imagesPage = scriptedPage{path: pathImages, prefix: pathImages + "/api", purpose: "images", keeps: true,
		scopes:   []string{images.Descriptor.Scope, responses.Shape.Scope},
		patterns: []string{"POST /images/generations", "POST /images/edits", "GET /receipts/{request_id}"}}
)

var scriptedPages = []*scriptedPage{&livePage, &chatPage, &imagesPage}

// keyPrefix returns what the ids of the page's keys begin with. The id of the user follows.
func (s *scriptedPage) keyPrefix() string { return strings.TrimPrefix(s.path, "/") + "_" }

// pageOfKey returns the address of the page that has a key with this id, or "".
func pageOfKey(id string) string {
	for _, page := range scriptedPages {
		if strings.HasPrefix(id, page.keyPrefix()) {
			return page.path
		}
	}
	return ""
}

// ForwardRoutes adds the routes that pages use in place of /v1. next serves a request of a scripted page under the same
// path below /v1, with a key that can do no more than the page (delegate), and the question of the first page with the
// first key. ForwardRoutes calls forward for the routes that leave dry runs to the route below /v1, and handle for the
// others, which have no dry run.
func (p *Portal) ForwardRoutes(handle, forward func(pattern string, h http.HandlerFunc), next http.Handler) {
	handle("POST "+pathAsk, p.ask(next))
	for _, page := range scriptedPages {
		patterns := page.patterns
		if page.keeps {
			patterns = slices.Concat(patterns, keptRoutes)
			handle("GET "+page.prefix+"/conversations", p.listKept(page))
		}
		for _, pattern := range patterns {
			method, path, _ := strings.Cut(pattern, " ")
			forward(method+" "+page.prefix+path, p.forward(page, next))
		}
	}
	handle("GET "+pathLive+"/price", p.videoPrice)
	handle("GET "+pathLive+"/queue", p.videoQueue)
}

// formToken returns the token that the script of a page sends with its requests.
func (rc *requestContext) formToken(page *scriptedPage) string {
	return rc.options.Browser.FormToken(&rc.visitor, page.purpose)
}

// chat shows the page that asks models.
func (rc *requestContext) chat() {
	balance, err := rc.options.Ledger.Balance(rc.r.Context(), rc.user.Username)
	if err != nil {
		rc.busy(rc.w, rc.r, err)
		return
	}
	view := &pages.Chat{Viewer: rc.viewer(), FormToken: rc.formToken(&chatPage), Address: rc.addressFor(rc.r),
		Model: cmp.Or(rc.query("model"), rc.exampleModel()), Available: balance.Available()}
	for _, name := range rc.options.TextModels() {
		if row, ok := rc.modelRow(name); ok {
			view.Models = append(view.Models, row)
		}
	}
	rc.show(http.StatusOK, view)
}

// live shows the page to all visitors. One who is not signed in types a key.
func (p *Portal) live(w http.ResponseWriter, r *http.Request) {
	visitor, err := p.options.Browser.Visitor(r)
	if err != nil {
		p.busy(w, r, err)
		return
	}
	rc := &requestContext{Portal: p, w: w, r: r, visitor: visitor}
	view := new(pages.Live)
	if visitor.SignedIn() {
		rc.user = visitor.Session.User
		view.Viewer, view.Token = new(p.viewerOf(&visitor)), rc.formToken(&livePage)
	}
	view.Maker = rc.maker(pages.KindVideo)
	p.write(w, r, http.StatusOK, view)
}

// forward serves a request of the script of a page in the name of the signed-in user.
func (p *Portal) forward(page *scriptedPage, next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key, err := p.delegate(page, r)
		if err != nil {
			envelope.Write(w, envelope.Plain, err)
			return
		}
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		r = auth.As(r, key)
		u := *r.URL
		u.Path, u.RawPath = pathV1+strings.TrimPrefix(u.Path, page.prefix), ""
		r.URL = &u
		next.ServeHTTP(w, r)
	}
}

// delegate returns the key with which a request of a page's script is served. It is made for this request only and has
// the scopes of the page and the limits of the signed-in user. It returns an error for the client if no user is signed
// in, or if a request that changes something has no valid token of the page's form.
func (p *Portal) delegate(page *scriptedPage, r *http.Request) (identity.Key, error) {
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
	if changes && p.options.Browser.CheckForm(r, &visitor, page.purpose, r.Header.Get(formHeader)) != nil {
		return identity.Key{}, dialogue.Refusal(http.StatusForbidden, "form_not_valid",
			"this page is of another session: reload it and try again")
	}
	user := visitor.Session.User
	// The key is not stored, so it cannot be stolen, and its id names the page and the
	// user in the log of requests and in receipts. The ceilings of the user bind it like any key of the user.
	return identity.Key{
		ID:      page.keyPrefix() + strconv.FormatInt(user.ID, 10),
		Name:    "page " + page.path,
		User:    user.Username,
		Enabled: true,
		Scopes:  page.scopes,
	}, nil
}
