package portal

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"stagedoor/actors/tokens"
	"stagedoor/http/auth"
	"stagedoor/http/envelope"
	"stagedoor/http/web/browser"
	"stagedoor/http/web/idp"
	"stagedoor/http/web/pages"
	"stagedoor/state/share"
)

const (
	pathWith       = "/signin/with/"
	pathIdentities = "/account/identities"

	// attemptCookie is the cookie that carries a sealed attempt to the provider and back, and purposeAttempt that of
	// its seal. A browser has one, so that a second attempt ends the first.
	attemptCookie  = "provider"
	purposeAttempt = "provider attempt"

	// maxReturn bounds the address to come back to, because browsers keep 4 KB for a cookie.
	maxReturn = 1500
)

// attempt holds the state that a browser carries to a provider and back. Its members have short names,
// because it travels in a cookie, of which browsers keep about 4 KB.
type attempt struct {
	idp.Attempt
	Next []byte `json:"x,omitempty"` // the path to go on to
	Link int64  `json:"l,omitempty"` // the user who links the person; 0: the person signs in
}

// Offers returns the providers that a sign-in page shows to v. Each leads on to next afterwards. An address that is too
// long to be carried along has none.
func (p *Portal) Offers(v *browser.Visitor, next string) []pages.Offer {
	if len(next) > maxReturn {
		return nil
	}
	var all []pages.Offer
	for _, provider := range p.options.Providers.Providers() {
		all = append(all, pages.Offer{Label: provider.Label, Next: next, Form: pages.Form{
			Action: pathWith + provider.Name, Token: p.options.Browser.FormToken(v, purposeSignIn)}})
	}
	return all
}

// leave sends a browser that is not signed in to a provider.
func (p *Portal) leave(w http.ResponseWriter, r *http.Request) {
	_, v, next, ok := p.readSignIn(w, r)
	if !ok {
		return
	}
	if err := p.sendToProvider(w, r, &v, r.PathValue("provider"), attempt{Next: []byte(next)}); err != nil {
		p.refuseProvider(w, r, &v, next, err)
	}
}

// sendToProvider shows a page that leads to a provider by itself. It is no redirect, because the policy of a page with
// a form would have to allow each host to which the provider redirects in turn.
func (p *Portal) sendToProvider(w http.ResponseWriter, r *http.Request, v *browser.Visitor, name string,
	a attempt) error {
	address, begun, err := p.options.Providers.Begin(r.Context(), auth.Remote(r).String(), name, a.Link != 0)
	if err != nil {
		return err
	}
	a.Attempt = begun
	sealed, err := p.options.Browser.Seal(purposeAttempt, v, idp.Life, a)
	if err != nil {
		return err
	}
	all := p.options.Providers.Providers()
	i := slices.IndexFunc(all, func(known idp.Provider) bool { return known.Name == name })
	if i < 0 {
		return idp.ErrUnknown // removed just now
	}
	http.SetCookie(w, p.options.Browser.Cookie(attemptCookie, sealed, idp.Life))
	w.Header().Set("Refresh", "0; url="+address)
	p.write(w, r, http.StatusOK, &pages.Leave{Label: all[i].Label, Address: address})
	return nil
}

// returned handles the answer of a provider, with which the browser comes back. The browser's attempt ends whatever the
// answer is. The attempt in the cookie shows that this browser began the sign-in at this provider. Without it, the
// answer may be one that an attacker has planted.
func (p *Portal) returned(w http.ResponseWriter, r *http.Request) {
	v, err := p.options.Browser.EnsureVisitor(w, r)
	if err != nil {
		p.busy(w, r, err)
		return
	}
	var a attempt
	c, err := r.Cookie(p.options.Browser.CookieName(attemptCookie))
	if err != nil || p.options.Browser.Unseal(purposeAttempt, &v, c.Value, &a) != nil ||
		a.Provider != r.PathValue("provider") {
		p.write(w, r, http.StatusForbidden, failureAnswer)
		return
	}
	http.SetCookie(w, p.options.Browser.Cookie(attemptCookie, "", -1))
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		p.write(w, r, http.StatusBadRequest, failureAnswer)
		return
	}
	who, provider, err := p.options.Providers.Finish(r.Context(), auth.Remote(r).String(), &a.Attempt, query)
	person := tokens.ExternalSignIn{Issuer: who.Issuer, Subject: who.Subject, Strong: provider.Strong,
		Create: provider.Create, Username: who.Username, Email: who.Email,
		Answer: tokens.Once{ID: a.Nonce, Expires: a.Expires}}
	if a.Link != 0 {
		p.linkReturned(w, r, &v, a.Link, person, err)
		return
	}
	next := browser.LocalPath(string(a.Next), pathAccount)
	if err == nil {
		person.Group, person.Admin = provider.Rights(&who)
		_, err = p.options.Browser.SignInExternal(w, r, &v, person)
	}
	if err != nil {
		p.refuseProvider(w, r, &v, next, err)
		return
	}
	seeOther(w, next)
}

// refuseProvider shows the sign-in page with the reason why a provider did not sign a person in, or asks for a code.
func (p *Portal) refuseProvider(w http.ResponseWriter, r *http.Request, v *browser.Visitor, next string, err error) {
	if code := (*browser.CodeRequired)(nil); errors.As(err, &code) {
		p.writeSignInProblem(w, r, v, next, "", "", err)
		return
	}
	if v.SignedIn() {
		p.write(w, r, http.StatusForbidden, failureForeign)
		return
	}
	view := p.signInView(v, next)
	var status int
	status, view.Problem = p.refusedPerson(w, r, err)
	p.write(w, r, status, view)
}

// refusedPerson puts an error of a provider's sign-in into words, and its cause into the log. Nothing that a provider
// has written is shown.
func (p *Portal) refusedPerson(w http.ResponseWriter, r *http.Request, err error) (status int, text string) {
	status, text = http.StatusForbidden, ""
	var field *tokens.FieldError
	switch {
	case errors.Is(err, idp.ErrUnknown):
		return http.StatusNotFound, "There is no such provider any more. Please choose another way to sign in."
	case errors.Is(err, tokens.ErrPasskey):
		return status, "This passkey is not accepted here. It may have been removed from the account."
	case errors.Is(err, idp.ErrForeign), errors.Is(err, tokens.ErrUsed), errors.Is(err, browser.ErrExpired),
		errors.Is(err, browser.ErrForged):
		return status, failureAnswer.Message
	case errors.Is(err, idp.ErrDenied):
		text = "The provider did not sign you in. Please try again."
	case errors.Is(err, idp.ErrDomain):
		return status, "Your e-mail address may not sign in here, or the provider has not verified it."
	case errors.Is(err, idp.ErrInvalid):
		text = "The answer of the provider cannot be trusted. Try again, and ask the operator if it happens again."
	case errors.Is(err, idp.ErrUnavailable):
		status, text = http.StatusServiceUnavailable, "The provider does not answer properly. Try again in a minute."
		envelope.SetRetryAfter(w.Header(), retryUnavailable)
	case errors.As(err, new(*share.Refused)):
		envelope.SetRetryAfter(w.Header(), retryUnavailable)
		return http.StatusTooManyRequests, "Too many people are signing in at providers. Wait a little and try again."
	case errors.Is(err, tokens.ErrUnlinked):
		return status, "No account here is linked to this sign-in. If you have one, sign in to it and link it on the " +
			"page Security. Otherwise ask the operator for an invitation."
	case errors.As(err, &field):
		status, text = http.StatusServiceUnavailable, "The provider's groups are not set up properly here. Ask the "+
			"operator."
	default:
		return p.refusedLogin(w, r, err)
	}
	if r.Context().Err() == nil {
		p.options.Logger.LogAttrs(r.Context(), slog.LevelWarn, "a provider did not sign a person in",
			slog.String("provider", r.PathValue("provider")), slog.String("cause", err.Error()))
	}
	return status, text
}

// linkReturned links a person to the signed-in user who began the attempt.
func (p *Portal) linkReturned(w http.ResponseWriter, r *http.Request, v *browser.Visitor, user int64,
	person tokens.ExternalSignIn, err error) {
	// The browser may have signed in as another user while it was at the provider. The person must not be linked to
	// that one.
	if !v.SignedIn() || v.Session.User.ID != user {
		p.write(w, r, http.StatusForbidden, failureAnswer)
		return
	}
	own := v.Session.User
	rc := &requestContext{Portal: p, w: w, r: auth.AsUser(r, own.Username), visitor: *v, user: own}
	if err == nil {
		_, err = p.options.Registry.LinkExternal(rc.r.Context(), user, person)
	}
	switch {
	case err == nil:
		p.options.Logger.Info("a sign-in at a provider was linked", "user", user)
		rc.done(pathSecurity, "identity_linked")
	case errors.Is(err, tokens.ErrExists):
		rc.securityAgain(http.StatusConflict, "This sign-in is linked to an account already.")
	case errors.Is(err, tokens.ErrTooMany):
		rc.securityAgain(rc.problem(err))
	default:
		rc.securityAgain(p.refusedPerson(w, r, err))
	}
}

// linkIdentity sends a user who has confirmed the change to a provider, to link the person there.
func (rc *requestContext) linkIdentity() {
	if !rc.confirmedSelf() {
		return
	}
	err := rc.sendToProvider(rc.w, rc.r, &rc.visitor, rc.form.Get("provider"), attempt{Link: rc.user.ID})
	if err != nil {
		rc.securityAgain(rc.refusedPerson(rc.w, rc.r, err))
	}
}

// unlinkIdentity removes one of the user's own ways to sign in.
func (rc *requestContext) unlinkIdentity() {
	if !rc.confirmedSelf() {
		return
	}
	err := rc.options.Registry.RemoveSignIn(rc.r.Context(), rc.user.ID, rc.r.PathValue("id"), rc.visitor.Session.ID)
	if errors.Is(err, tokens.ErrOnlySignIn) {
		rc.securityAgain(http.StatusConflict, "You could not sign in any more. Ask an administrator for a link with "+
			"which you choose a password first.")
		return
	}
	rc.concluded(err, pathSecurity, "identity_unlinked")
}

// unlinkUserIdentity removes a way to sign in of another user, for an administrator.
func (rc *requestContext) unlinkUserIdentity(u tokens.User) {
	if !rc.confirmed(u) {
		return
	}
	err := rc.options.Registry.RemoveSignIn(rc.r.Context(), u.ID, rc.r.PathValue("identity"), "")
	rc.changed(err, pathUser(u.ID), "identity_unlinked", "way to sign in removed by an administrator", "user", u.ID)
}

// identityLines lists the people at providers as whom a user signs in, and the user's passkeys.
func (rc *requestContext) identityLines(user int64) []pages.Identity {
	// A provider may have been removed from the configuration. Its host stands in for the label then, because the user
	// can still remove what is linked.
	labels := map[string]string{}
	for _, p := range rc.options.Providers.Providers() {
		labels[p.Issuer] = p.Label
	}
	var lines []pages.Identity
	for _, x := range rc.options.Registry.ExternalIdentities(user) {
		label := cmp.Or(labels[x.Issuer], strings.TrimPrefix(x.Issuer, "https://"))
		lines = append(lines, pages.Identity{ID: x.ID, Label: label, Created: x.Created, Seen: x.Seen})
	}
	for _, k := range rc.options.Registry.Passkeys(user) {
		lines = append(lines, pages.Identity{ID: k.ID, Label: "Passkey: " + k.Name, Name: k.Name,
			Created: k.Created, Seen: k.Seen})
	}
	return lines
}
