package portal

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"stagedoor/actors/tokens"
	"stagedoor/http/auth"
	"stagedoor/http/web/browser"
	"stagedoor/http/web/pages"
)

// Purposes of sealed challenges, and their life.
const (
	purposePasskey    = "passkey"
	purposeNewPasskey = "new passkey"
	challengeLife     = 15 * time.Minute
	// maxDeviceAnswer bounds what a device has sent. It may hold keys of any size, and the time to
	// verify a signature grows with the square of a key.
	maxDeviceAnswer = 16 << 10

	pathPasskey  = "/signin/passkey"
	pathPasskeys = "/account/passkeys"
)

// newPasskeys returns the verifier of passkeys for the gateway's address, or nil if browsers allow none there: an
// address of numbers has no domain, and plain http is for this machine only.
func newPasskeys(origin string) *webauthn.WebAuthn {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "https" && u.Hostname() != "localhost" || protocol.ValidateRPID(u.Hostname()) != nil {
		return nil
	}
	// The device must verify the person, because a passkey takes the place of the password and of the second factor. It
	// must also keep the passkey itself, so that a sign-in needs no username. No proof of the maker of the device is
	// asked for: none is refused, and browsers would warn people of the question.
	w, err := webauthn.New(&webauthn.Config{RPID: u.Hostname(), RPDisplayName: "Stagedoor " + u.Hostname(),
		RPOrigins: []string{origin}, AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{UserVerification: protocol.VerificationRequired,
			ResidentKey: protocol.ResidentKeyRequirementRequired},
		// No output is read, so that password managers may send what they like.
		ExtensionsUnsolicitedOutputPolicy: protocol.UnsolicitedOutputPolicyIgnore})
	if err != nil {
		return nil
	}
	return w
}

// passkeyUser is a user as the library knows one.
type passkeyUser struct {
	tokens.User
	credentials []tokens.Credential
}

// WebAuthnID implements webauthn.User. Devices keep it, so that it says nothing about the person.
func (u *passkeyUser) WebAuthnID() []byte { return []byte("user " + strconv.FormatInt(u.ID, 10)) }

// WebAuthnName implements webauthn.User.
func (u *passkeyUser) WebAuthnName() string { return u.Username }

// WebAuthnDisplayName implements webauthn.User.
func (u *passkeyUser) WebAuthnDisplayName() string { return u.Username }

// WebAuthnCredentials implements webauthn.User.
func (u *passkeyUser) WebAuthnCredentials() []webauthn.Credential {
	var all []webauthn.Credential
	for _, c := range u.credentials {
		known := webauthn.Credential{ID: c.ID, PublicKey: c.Key}
		known.Flags.BackupEligible, known.Flags.UserVerified = c.Synced, true
		known.Authenticator.SignCount = c.Count
		all = append(all, known)
	}
	return all
}

// challenge is sealed for the browser that a device must answer in.
type challenge struct {
	Session webauthn.SessionData `json:"s"`
	Expires time.Time            `json:"e"`
}

// once returns the mark that lets the challenge be answered once only.
func (c *challenge) once() tokens.Once {
	return tokens.Once{ID: c.Session.Challenge, Expires: c.Expires}
}

// ceremony returns the part of a form with a challenge, for the browser of v. It returns nil if that fails, so that the
// page comes without it.
func (p *Portal) ceremony(v *browser.Visitor, purpose string, options any, s *webauthn.SessionData,
	err error) *pages.Ceremony {
	if err != nil {
		p.options.Logger.Error("make a challenge for passkeys", "cause", err)
		return nil
	}
	text, err := json.Marshal(options)
	if err != nil {
		return nil
	}
	sealed, err := p.options.Browser.Seal(purpose, v, challengeLife,
		challenge{Session: *s, Expires: p.options.Now().Add(challengeLife)})
	if err != nil {
		return nil
	}
	return &pages.Ceremony{Options: string(text), Challenge: sealed}
}

// Passkey returns the form with which a device signs in on a page for v and goes on to next, or nil if the gateway has
// no passkeys.
func (p *Portal) Passkey(v *browser.Visitor, next string) *pages.Passkey {
	if p.passkeys == nil || len(next) > maxReturn {
		return nil
	}
	verified := webauthn.WithUserVerification(protocol.VerificationRequired)
	options, session, err := p.passkeys.BeginDiscoverableLogin(verified)
	var response any
	if err == nil {
		response = options.Response
	}
	c := p.ceremony(v, purposePasskey, response, session, err)
	if c == nil {
		return nil
	}
	return &pages.Passkey{Ceremony: *c, Next: next, Form: pages.Form{Action: pathPasskey,
		Token: p.options.Browser.FormToken(v, purposeSignIn)}}
}

// signInPasskey handles the form with which a device answers a challenge, and signs its user in.
func (p *Portal) signInPasskey(w http.ResponseWriter, r *http.Request) {
	form, v, next, ok := p.readSignIn(w, r)
	if !ok {
		return
	}
	var c challenge
	used, err := tokens.Credential{}, p.options.Browser.Unseal(purposePasskey, &v, form.Get("challenge"), &c)
	if err == nil {
		used, err = p.verifyPasskey(&c, form.Get("answer"))
	}
	if err == nil {
		_, err = p.options.Browser.SignInPasskey(w, r, used, c.once())
	}
	if err != nil {
		p.refuseProvider(w, r, &v, next, err)
		return
	}
	seeOther(w, next)
}

// verifyPasskey returns the passkey that has answered a challenge, with its counter, which the registry compares with
// the last one. It returns ErrPasskey.
func (p *Portal) verifyPasskey(c *challenge, answer string) (tokens.Credential, error) {
	if p.passkeys == nil || len(answer) > maxDeviceAnswer {
		return tokens.Credential{}, tokens.ErrPasskey
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes([]byte(answer))
	if err != nil {
		return tokens.Credential{}, tokens.ErrPasskey
	}
	var known tokens.Credential
	find := func(id, _ []byte) (webauthn.User, error) {
		found, u, err := p.options.Registry.FindPasskey(id)
		known = found
		return &passkeyUser{u, []tokens.Credential{found}}, err
	}
	_, seen, err := p.passkeys.ValidatePasskeyLogin(find, c.Session, parsed)
	if err != nil {
		return tokens.Credential{}, tokens.ErrPasskey
	}
	known.Count = seen.Authenticator.SignCount
	return known, nil
}

// newPasskey returns the form for a further passkey of the user, or nil if the gateway has none.
func (rc *requestContext) newPasskey() *pages.Ceremony {
	if rc.passkeys == nil {
		return nil
	}
	u := &passkeyUser{rc.user, rc.options.Registry.Credentials(rc.user.ID)}
	options, session, err := rc.passkeys.BeginRegistration(u,
		webauthn.WithExclusions(webauthn.Credentials(u.WebAuthnCredentials()).CredentialDescriptors()))
	var response any
	if err == nil {
		response = options.Response
	}
	return rc.ceremony(&rc.visitor, purposeNewPasskey, response, session, err)
}

// addPasskey stores a passkey that the user's device has made, after a confirmation.
func (rc *requestContext) addPasskey() {
	var c challenge
	if rc.options.Browser.Unseal(purposeNewPasskey, &rc.visitor, rc.form.Get("challenge"), &c) != nil ||
		rc.passkeys == nil {
		rc.securityAgain(http.StatusForbidden, "Making the passkey took too long. Please try again.")
		return
	}
	u := &passkeyUser{rc.user, nil}
	answer := rc.form.Get("answer")
	parsed, err := protocol.ParseCredentialCreationResponseBytes([]byte(answer))
	var made *webauthn.Credential
	if err == nil && len(answer) > maxDeviceAnswer {
		err = tokens.ErrPasskey
	}
	if err == nil {
		made, err = rc.passkeys.CreateCredential(u, c.Session, parsed)
	}
	if err != nil || !bytes.Equal(c.Session.UserID, u.WebAuthnID()) {
		rc.securityAgain(http.StatusForbidden, "The device sent no passkey that can be used here.")
		return
	}
	// The password is checked last, because hashing it is the expensive part, and an answer that cannot be used needs
	// none.
	if !rc.confirmedSelf() {
		return
	}
	err = rc.options.Registry.AddPasskey(rc.r.Context(), rc.user.ID, rc.form.Get("name"), tokens.Credential{ID: made.ID,
		Key: made.PublicKey, Count: made.Authenticator.SignCount, Synced: made.Flags.BackupEligible}, c.once())
	switch {
	case errors.Is(err, tokens.ErrExists), errors.Is(err, tokens.ErrUsed):
		rc.securityAgain(http.StatusConflict, "This passkey is there already.")
	case err != nil:
		rc.securityAgain(rc.problem(err))
	default:
		rc.options.Logger.Info("a passkey was added", "user", rc.user.ID, "address", auth.Remote(rc.r).String())
		rc.done(pathSecurity, "passkey_added")
	}
}

// renamePasskey gives one of the user's passkeys another name.
func (rc *requestContext) renamePasskey() {
	err := rc.options.Registry.RenamePasskey(rc.r.Context(), rc.user.ID, rc.r.PathValue("id"), rc.form.Get("name"))
	if errors.Is(err, tokens.ErrInvalid) {
		rc.securityAgain(rc.problem(err))
		return
	}
	rc.concluded(err, pathSecurity, "passkey_renamed")
}
