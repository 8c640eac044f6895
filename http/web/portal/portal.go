package portal

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/webauthn"

	"stagedoor/actors/ledger"
	"stagedoor/actors/tokens"
	"stagedoor/http/auth"
	httpflow "stagedoor/http/flow"
	"stagedoor/http/live"
	"stagedoor/http/settings"
	"stagedoor/http/web/browser"
	"stagedoor/http/web/idp"
	"stagedoor/http/web/mailer"
	"stagedoor/http/web/pages"
	"stagedoor/providers/catalog"
	"stagedoor/providers/turns"
	"stagedoor/providers/video"
	"stagedoor/state"
	"stagedoor/state/money"
	"stagedoor/state/work"
)

// Options configure a Portal.
type Options struct {
	Logger   *slog.Logger
	Registry *tokens.Client
	Ledger   *ledger.Client
	State    *state.State
	Browser  *browser.Guard
	// Providers are the OpenID providers at which people may sign in.
	Providers *idp.Client
	// Mail sends links to people. Nil, or one that is not ready: the pages show all links.
	Mail *mailer.Client
	// KeyName returns the name of a key that can be used, also of one in the configuration file, or "".
	KeyName func(id string) string
	// Address is the gateway's scheme://host[:port] in examples.
	Address string
	// Catalog returns the models that are served now.
	Catalog func() *catalog.Catalog
	// TextModels are names of models that can be asked. The first one is in examples.
	TextModels func() []string
	// VideoPrice returns what a job of so many seconds would hold, in micro-dollars (videojob.Service.Price).
	VideoPrice func(plan []catalog.Candidate, op video.Operation, seconds int64) (int64, error)
	// FirstKey returns the key that the gateway made at its first start, in the clear, if the page at / may show it
	// to the sender of r, and else "": only to a browser on this machine, only while there is no user, and only on a
	// gateway without a configuration file. Nil means never. The page must not be stored by caches.
	FirstKey func(r *http.Request) string
	// Mistakes returns what is wrong with the configuration file on disk, which administrators see on every page
	// that has the side bar.
	Mistakes func() []string
	// Erase erases a user, and returns how many requests and jobs of the user are still at work.
	Erase func(ctx context.Context, user int64) (remaining int, err error)
	// Demands reports whether the role of a user needs a second factor.
	Demands func(u *tokens.User) bool
	// TopUpURL replaces the gateway's own top-up page; "": it does not.
	TopUpURL func() string
	// Overview shows the requests in flight, and Live returns the handlers of its
	// websocket. Both are nil if it is disabled.
	Overview *httpflow.Overview
	Live     func() *live.Handlers
	// Place returns where an address of the internet is, or "". It may be nil.
	Place func(netip.Addr) string
	// AlertsTo says where alerts go, or is "" if none are sent.
	AlertsTo func() string
	// RequestLog is the log of requests. Nil means that it has no pages.
	RequestLog RequestLog
	// Recordings has what recorded keys sent and were answered. Nil means that nothing is kept.
	Recordings Recordings
	// Settings changes providers and models. Nil means that no page does.
	Settings settings.Store
	Now      func() time.Time
	Random   io.Reader
}

// Portal serves the routes. Any goroutine may use it.
type Portal struct {
	options Options
	// passkeys verifies the answers of devices; nil: there are no passkeys.
	passkeys *webauthn.WebAuthn
	sent     sentForms
	changes  changeCounts
	mails    changeCounts
	tests    providerTests
	searches *turns.Queue // of the log of requests
}

// New makes a Portal. It has no passkeys if browsers allow none at Options.Address.
func New(o Options) *Portal {
	pages.Prepare()
	return &Portal{options: o, passkeys: newPasskeys(o.Address), sent: newSentForms(o.Now),
		changes:  changeCounts{most: maxChanges, window: changeWindow},
		mails:    changeCounts{most: maxMails, window: mailWindow},
		searches: turns.New(searchesAtOnce)}
}

// Paths that others lead to.
const (
	pathSignIn  = "/signin"
	pathAccount = "/account"
	pathAdmin   = "/admin"
	pathAPI     = "/admin/v1/" // not the portal's: programs administer there
)

// routeFunc adds a handler for a method and a path, such as "GET /account".
type routeFunc func(pattern string, h http.HandlerFunc)

// Routes calls to with the pattern and the handler of each of the portal's routes. The audit log names a visitor as the
// actor of a request until the handler has found who has signed in.
func (p *Portal) Routes(to func(pattern string, h http.HandlerFunc)) {
	handle := func(pattern string, h http.HandlerFunc) {
		to(pattern, auth.Acting(state.ActorVisitor, auth.ViaPage, h))
	}
	p.signInRoutes(handle)
	p.accountRoutes(handle)
	p.securityRoutes(handle)
	p.leadRoutes(handle)
	handle("GET "+pathLive, p.live)
	p.userRoutes(handle)
	p.groupRoutes(handle)
	p.adminRoutes(handle)
	p.flowRoutes(handle)
	p.settingsRoutes(handle)
	p.requestRoutes(handle)
}

// signInRoutes adds the first page, the documents, and all ways to sign in and out.
func (p *Portal) signInRoutes(handle routeFunc) {
	handle("GET /{$}", p.firstPage)
	handle("GET /docs/{path...}", p.document)
	handle("GET "+pathSignIn, p.signInPage)
	handle("POST "+pathSignIn, p.signIn)
	handle("POST "+pathPasskey, p.signInPasskey)
	handle("POST "+pathWith+"{provider}", p.leave)
	handle("GET "+idp.Callback("{provider}"), p.returned)
	handle("GET "+browser.PathLink, p.linkPage)
	handle("POST "+browser.PathLink, p.useLink)
	handle("GET /signout", p.member((*requestContext).signOutPage))
	handle("POST /signout", p.memberForm((*requestContext).signOut))
}

// accountRoutes adds the pages on which users use the models and change their keys, apps and developer tokens.
func (p *Portal) accountRoutes(handle routeFunc) {
	handle("GET "+pathAccount, p.member((*requestContext).account))
	handle("POST /theme", p.memberForm((*requestContext).changeTheme))
	handle("GET "+pathSearch, p.member((*requestContext).search))
	handle("GET "+pathSearch+".json", p.member((*requestContext).searchJSON))
	handle("GET "+pathUsage, p.member((*requestContext).ownUsage))
	handle("GET "+pathUsage+".csv", p.member((*requestContext).exportOwnUsage))
	handle("GET /account/keys", p.member((*requestContext).keys))
	handle("POST /account/keys", p.memberForm(limited((*requestContext).createKey)))
	handle("GET /account/keys/{id}", p.member((*requestContext).oneKey))
	handle("POST /account/keys/{id}/{action}", p.memberForm(limited((*requestContext).changeKey)))
	handle("GET "+pathChat, p.member((*requestContext).chat))
	handle("GET "+pathImages, p.member((*requestContext).images))
	handle("GET "+pathModels, p.member((*requestContext).models))
	handle("GET "+pathModels+"/{name...}", p.member((*requestContext).oneModel))
	handle("GET /connect", p.member((*requestContext).connect))
	handle("GET /account/apps", p.member((*requestContext).apps))
	handle("POST /account/apps", p.memberForm(limited((*requestContext).registerApp)))
	handle("GET /account/apps/{id}", p.member(ofApp((*requestContext).oneApp)))
	for _, action := range ownAppActions {
		handle("POST /account/apps/{id}/"+action, p.memberForm(limited(ofApp((*requestContext).changeOwnApp))))
	}
	handle("POST /account/apps/{id}/logo", p.memberUpload(limited(ofApp((*requestContext).changeLogo))))
	handle("POST /account/apps/{id}/revoke", p.memberForm(limited((*requestContext).revokeApp)))
	handle("GET /account/tokens", p.member((*requestContext).developerTokens))
	handle("POST /account/tokens", p.memberForm(limited((*requestContext).createDeveloperToken)))
	handle("POST /account/tokens/{id}/revoke", p.memberForm(limited((*requestContext).revokeDeveloperToken)))
}

// securityRoutes adds the pages on which users change how they sign in, end sessions and delete their account.
func (p *Portal) securityRoutes(handle routeFunc) {
	handle("GET /account/security", p.member((*requestContext).security))
	handle("GET "+browser.PathSecondFactor, p.member((*requestContext).newSecondFactor))
	handle("POST "+browser.PathSecondFactor, p.memberForm((*requestContext).enableSecondFactor))
	handle("POST /account/second-factor/codes", p.memberForm((*requestContext).renewRecovery))
	handle("POST /account/second-factor/off", p.memberForm((*requestContext).disableSecondFactor))
	handle("POST "+pathPasskeys, p.memberForm((*requestContext).addPasskey))
	handle("POST "+pathPasskeys+"/{id}/rename", p.memberForm(limited((*requestContext).renamePasskey)))
	handle("POST "+pathIdentities, p.memberForm((*requestContext).linkIdentity))
	handle("POST "+pathIdentities+"/{id}/unlink", p.memberForm((*requestContext).unlinkIdentity))
	handle("POST /account/password", p.memberForm((*requestContext).changePassword))
	handle("POST /account/delete", p.memberForm((*requestContext).deleteAccount))
	handle("POST /account/sessions/end", p.memberForm((*requestContext).endSessions))
	handle("POST /account/sessions/{id}/end", p.memberForm((*requestContext).endSession))
}

// userRoutes adds the pages on which administrators change users and invite new ones.
func (p *Portal) userRoutes(handle routeFunc) {
	handle("GET "+pathAdmin, sendTo("/admin/users"))
	handle("GET /admin/users", p.admin((*requestContext).users))
	handle("POST "+pathUsers, p.adminForm((*requestContext).createUser))
	handle("GET /admin/users/{id}", p.admin(ofUser((*requestContext).oneUser)))
	handle("POST /admin/users/{id}/money", p.adminForm(ofUser((*requestContext).moveMoney)))
	handle("POST /admin/users/{id}/status", p.adminForm(ofUser((*requestContext).setStatus)))
	handle("POST /admin/users/{id}/keys", p.adminForm(ofUser((*requestContext).createUserKey)))
	handle("POST /admin/users/{id}/ceiling", p.adminForm(ofUser((*requestContext).changeCeiling)))
	handle("POST /admin/users/{id}/group", p.adminForm(ofUser((*requestContext).moveUser)))
	handle("POST /admin/users/{id}/role", p.adminForm(ofAnother("change the role of", (*requestContext).changeRole)))
	handle("POST /admin/users/{id}/second-factor/off", p.adminForm(
		ofAnother("reset the second factor of", (*requestContext).resetSecondFactor)))
	handle("POST /admin/users/{id}/link", p.adminForm(ofAnother("make a link for", (*requestContext).makeResetLink)))
	handle("POST /admin/users/{id}/sessions/end", p.adminForm(ofUser((*requestContext).endUserSessions)))
	handle("POST /admin/users/{id}/sessions/{session}/end", p.adminForm(ofUser((*requestContext).endUserSession)))
	handle("POST /admin/users/{id}/identities/{identity}/unlink", p.adminForm(
		ofAnother("remove a way to sign in of", (*requestContext).unlinkUserIdentity)))
	handle("POST /admin/users/{id}/erase", p.adminForm(ofAnother("erase", (*requestContext).eraseUser)))
	handle("POST "+pathInvitations, p.adminForm((*requestContext).invite))
	handle("POST "+pathInvitations+"/{id}/withdraw", p.adminForm((*requestContext).withdrawInvitation))
}

// groupRoutes adds the pages on which administrators change groups and their members.
func (p *Portal) groupRoutes(handle routeFunc) {
	handle("GET /admin/groups", p.admin((*requestContext).groups))
	handle("POST /admin/groups", p.adminForm((*requestContext).createGroup))
	handle("GET /admin/groups/{id}", p.admin(ofGroup((*requestContext).oneGroup)))
	handle("POST /admin/groups/{id}/ceiling", p.adminForm(ofGroup((*requestContext).changeGroup)))
	handle("POST /admin/groups/{id}/members", p.adminForm(ofGroup((*requestContext).addMember)))
	handle("POST /admin/groups/{id}/members/{user}/remove", p.adminForm(ofGroup((*requestContext).removeMember)))
	handle("POST /admin/groups/{id}/members/{user}/lead", p.adminForm(setLead(true)))
	handle("POST /admin/groups/{id}/members/{user}/unlead", p.adminForm(setLead(false)))
	handle("POST /admin/groups/{id}/delete", p.adminForm(ofGroup((*requestContext).deleteGroup)))
}

// adminRoutes adds the administrators' pages about all keys, the spending, the audit log and redeem codes.
func (p *Portal) adminRoutes(handle routeFunc) {
	handle("GET /admin/keys", p.admin((*requestContext).allKeys))
	handle("POST /admin/keys/{id}/{action}", p.adminForm((*requestContext).changeAnyKey))
	handle("GET "+pathSpend, p.admin(withScope((*requestContext).showSpend)))
	handle("POST "+pathSpend+"/alerts/test", p.adminForm((*requestContext).testAlerts))
	handle("GET "+pathSpend+".csv", p.admin(withScope((*requestContext).exportSpending)))
	handle("GET "+pages.PathAudit, p.admin((*requestContext).audit))
	handle("GET "+pages.PathAudit+".csv", p.admin(func(rc *requestContext) {
		rc.exportAudit(mediaCSV, "audit.csv", newRowWriter)
	}))
	handle("GET "+pages.PathAudit+".jsonl", p.admin(func(rc *requestContext) {
		rc.exportAudit("application/jsonl", "audit.jsonl", newLineWriter)
	}))
	handle("GET /admin/codes", p.admin((*requestContext).codes))
	handle("POST /admin/codes", p.adminForm((*requestContext).mint))
}

// Missing answers a request for a page that no route has, and reports whether it did. It does if the path is one of the
// portal's, and for other paths if the client asks for a page, as browsers do.
func (p *Portal) Missing(w http.ResponseWriter, r *http.Request) bool {
	inside := func(section string) bool { return strings.HasPrefix(r.URL.Path, section+"/") }
	switch {
	case r.Method != http.MethodGet || strings.HasPrefix(r.URL.Path, pathAPI):
		return false
	case slices.ContainsFunc([]string{pathAccount, pathLed, pathAdmin, pathFlow, pathRequestLog}, inside):
		p.member((*requestContext).missing)(w, r)
	case !strings.Contains(r.Header.Get("Accept"), "text/html"):
		return false
	default:
		// There is nothing to see after a sign-in, so guests are not sent to it.
		visitor, err := p.options.Browser.Visitor(r)
		if err != nil || !visitor.SignedIn() {
			p.write(w, r, http.StatusNotFound, failureMissing)
			break
		}
		p.member((*requestContext).missing)(w, r)
	}
	return true
}

// failureMissing is the 404 page for a browser that has not signed in.
var failureMissing = &pages.Failure{Title: "Not found", Message: "There is nothing at this address.",
	Back: &pages.Link{Name: "Sign in", Path: pathSignIn}}

// sendTo returns a handler that redirects every request to a path of the gateway.
func sendTo(path string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { seeOther(w, path) }
}

// seeOther sends a browser to a path of this service. It is always 303: what was
// posted is not posted again.
func seeOther(w http.ResponseWriter, path string) {
	pages.NoStore(w.Header())
	w.Header().Set("Location", path)
	w.WriteHeader(http.StatusSeeOther)
}

// requestContext holds one request of a signed-in user.
type requestContext struct {
	*Portal
	w       http.ResponseWriter
	r       *http.Request
	visitor browser.Visitor // the browser and its session
	user    tokens.User     // as the registry had the user when the request began
	form    url.Values      // nil: it is not a form
}

// member returns the handler of a page behind sign-in. A browser that has not signed in is sent to the sign-in page,
// and a user who must still set up a second factor is sent to do that.
func (p *Portal) member(serve func(*requestContext)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if v, ok := p.enter(w, r); ok {
			serve(v)
		}
	}
}

// memberForm returns the handler of a form behind sign-in. The form must have the token of its page, which protects it
// from forms on other sites.
func (p *Portal) memberForm(serve func(*requestContext)) http.HandlerFunc {
	return p.memberBody(browser.ReadForm, serve)
}

// memberUpload serves a form with one file of at most tokens.MaxLogo bytes, of a user who is signed in.
func (p *Portal) memberUpload(serve func(*requestContext)) http.HandlerFunc {
	read := func(w http.ResponseWriter, r *http.Request) (url.Values, error) {
		return browser.ReadUpload(w, r, tokens.MaxLogo)
	}
	return p.memberBody(read, serve)
}

// memberBody returns a handler for a form of a person who is signed in. read reads the body, which may have files.
// The token of the form is checked after the body was read, because it is in the body.
func (p *Portal) memberBody(read func(http.ResponseWriter, *http.Request) (url.Values, error),
	serve func(*requestContext)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, ok := p.enter(w, r)
		if !ok {
			return
		}
		form, ok := p.readBody(w, r, read)
		if !ok {
			return
		}
		if p.options.Browser.CheckForm(r, &v.visitor, pages.ViewerPurpose, form.Get("token")) != nil {
			p.write(w, r, http.StatusForbidden, failureForeign)
			return
		}
		v.form = form
		serve(v)
	}
}

// admin returns the handler of a page that only administrators may see.
func (p *Portal) admin(serve func(*requestContext)) http.HandlerFunc {
	return p.member(administering(serve))
}

// adminForm returns the handler of a form that only administrators may send.
func (p *Portal) adminForm(serve func(*requestContext)) http.HandlerFunc {
	return p.memberForm(administering(serve))
}

// administering returns a handler for administrators. For all others the page does not exist.
func administering(serve func(*requestContext)) func(*requestContext) {
	return func(rc *requestContext) {
		if !rc.user.Admin {
			rc.missing()
			return
		}
		serve(rc)
	}
}

// enter returns the context of a request of a signed-in user. If it returns false, it has written the reply: a redirect
// to the sign-in page, which leads back afterwards, or to the page of the second factor that the user must set up, or
// an error page. A form that was sent without a session is lost, and the browser comes back to a page near it. From
// here on the audit log names the user as the actor of the request.
func (p *Portal) enter(w http.ResponseWriter, r *http.Request) (*requestContext, bool) {
	visitor, err := p.options.Browser.Visitor(r)
	switch {
	case err != nil:
		p.busy(w, r, err)
		return nil, false
	case visitor.MustEnrol() && r.URL.Path != browser.PathSecondFactor && r.URL.Path != "/signout":
		seeOther(w, browser.PathSecondFactor)
		return nil, false
	case !visitor.SignedIn() && !visitor.MustEnrol():
		seeOther(w, pathSignIn+"?"+url.Values{"next": {comeBack(r)}}.Encode())
		return nil, false
	}
	r = auth.AsUser(r, visitor.Session.User.Username)
	return &requestContext{Portal: p, w: w, r: r, visitor: visitor, user: visitor.Session.User}, true
}

// comeBack returns where to go after a sign-in. The page of a form cannot be repeated, so its section is shown.
func comeBack(r *http.Request) string {
	if r.Method == http.MethodGet {
		return browser.LocalPath(r.URL.RequestURI(), pathAccount)
	}
	for _, section := range []string{pathAdmin, pathFlow, pathLed} {
		if strings.HasPrefix(r.URL.Path, section+"/") {
			return section
		}
	}
	return pathAccount
}

// readForm reads a form without files.
func (p *Portal) readForm(w http.ResponseWriter, r *http.Request) (url.Values, bool) {
	return p.readBody(w, r, browser.ReadForm)
}

// readVisitorForm returns a form and the browser that sent it. If ok is false, it has written the page that says why.
// The caller must check the form's token.
func (p *Portal) readVisitorForm(w http.ResponseWriter, r *http.Request) (f url.Values, v browser.Visitor, ok bool) {
	if f, ok = p.readForm(w, r); !ok {
		return nil, v, false
	}
	v, err := p.options.Browser.Visitor(r)
	if err != nil {
		p.busy(w, r, err)
	}
	return f, v, err == nil
}

// readSignIn returns a form of the sign-in page whose token is good, and the page that follows. If ok is false, it has
// written the reply.
func (p *Portal) readSignIn(w http.ResponseWriter, r *http.Request) (
	form url.Values, v browser.Visitor, next string, ok bool,
) {
	if form, v, ok = p.readVisitorForm(w, r); !ok {
		return nil, v, "", false
	}
	next = browser.LocalPath(form.Get("next"), pathAccount)
	if p.options.Browser.CheckForm(r, &v, purposeSignIn, form.Get("token")) != nil {
		p.signInAnew(w, r, next)
		return nil, v, "", false
	}
	return form, v, next, true
}

// readBody reads a body and answers with an error page if it cannot be read.
func (p *Portal) readBody(w http.ResponseWriter, r *http.Request,
	read func(http.ResponseWriter, *http.Request) (url.Values, error)) (url.Values, bool) {
	form, err := read(w, r)
	if err != nil {
		status := http.StatusBadRequest
		if errors.Is(err, browser.ErrFormSize) {
			status = http.StatusRequestEntityTooLarge
		}
		p.write(w, r, status, failureBroken)
		return nil, false
	}
	return form, true
}

// viewerOf returns what the frame of a page shows a signed-in user. Only administrators see the requests in flight.
func (p *Portal) viewerOf(v *browser.Visitor) pages.Viewer {
	d := pages.NewViewer(p.options.Browser, v, p.options.TopUpURL(), p.options.Mistakes())
	account := money.FindAccount(p.options.State.View(), d.Username)
	d.Left = account.Available()
	d.Videos = int64(work.CountVideosInProgress(p.options.State.View(), state.OwnerOf("", d.Username)))
	if o := p.options.Overview; o != nil && d.Admin {
		d.InFlight = int64(o.InFlight())
	}
	return d
}

// viewer returns what the frame of the page shows the user, with what was just done if the address says so.
func (rc *requestContext) viewer() pages.Viewer {
	d := rc.viewerOf(&rc.visitor)
	if rc.r.Method == http.MethodGet {
		d.Notice = notices[rc.query("done")]
	}
	return d
}

// query returns a parameter of the address, or "" if it is absent or cannot be read.
func (rc *requestContext) query(name string) string { return rc.r.URL.Query().Get(name) }

// changeTheme keeps the theme of the browser and sends it back to the page it came from.
func (rc *requestContext) changeTheme() {
	pages.SetTheme(rc.w, rc.form.Get("theme"), strings.HasPrefix(rc.options.Address, "https:"))
	seeOther(rc.w, browser.LocalPath(rc.form.Get("next"), pathAccount))
}

// done sends the browser to a page that says what was done. what is a word of notices.
func (rc *requestContext) done(path, what string) {
	seeOther(rc.w, path+"?"+url.Values{"done": {what}}.Encode())
}

// missing writes the 404 page. It is the same for what does not exist and for what the user may not see, so that
// nothing can be learned from the difference.
func (rc *requestContext) missing() {
	rc.write(rc.w, rc.r, http.StatusNotFound, &pages.Missing{Viewer: rc.viewerOf(&rc.visitor)})
}

// show writes a page as the reply.
func (rc *requestContext) show(status int, view pages.View) { rc.write(rc.w, rc.r, status, view) }

// write writes a page. A client that has left is no reason for a line in the log.
func (p *Portal) write(w http.ResponseWriter, r *http.Request, status int, view pages.View) {
	if err := pages.Write(w, r, status, view); err != nil && r.Context().Err() == nil {
		p.options.Logger.Error("draw a page", "path", r.URL.Path, "cause", err)
	}
}
