package portal_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"html"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"stagedoor/actors/tokens"
	"stagedoor/state"
)

// device is a software authenticator with one passkey.
type device struct {
	key    *ecdsa.PrivateKey
	id     []byte
	user   string // the handle that it was given, in base64url
	count  uint32
	flags  byte   // user present and verified, and others
	origin string // of the page that the browser shows
	more   string // a member of the answer that means nothing
	rp     string
}

const verified, present, attested = 0x04, 0x01, 0x40

func newDevice(t *testing.T) *device {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &device{key: key, id: []byte("credential " + rand.Text()), flags: present | verified, origin: origin,
		rp: "gateway.example.net"}
}

var encode = base64.RawURLEncoding.EncodeToString

func (d *device) authenticatorData(flags byte) []byte {
	hash := sha256.Sum256([]byte(d.rp))
	return binary.BigEndian.AppendUint32(append(hash[:], flags), d.count)
}

func (d *device) clientData(kind, challenge string) []byte {
	text, _ := json.Marshal(map[string]any{"type": kind, "challenge": challenge, "origin": d.origin,
		"crossOrigin": false})
	return text
}

func (d *device) answer(response map[string]string) string {
	text, _ := json.Marshal(map[string]any{"id": encode(d.id), "rawId": encode(d.id), "type": "public-key",
		"response": response, "clientExtensionResults": map[string]any{}, "more": d.more})
	return string(text)
}

// create answers the options of a page with a new passkey.
func (d *device) create(options string) string {
	var o struct {
		Challenge string
		User      struct{ ID string }
	}
	_ = json.Unmarshal([]byte(options), &o)
	d.user = o.User.ID
	point, _ := d.key.PublicKey.Bytes() // 4, x, y
	cose := append([]byte{0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32}, point[1:33]...)
	cose = append(append(cose, 0x22, 0x58, 32), point[33:]...)
	data := append(d.authenticatorData(d.flags|attested), make([]byte, 16)...) // of no vendor
	data = append(append(binary.BigEndian.AppendUint16(data, uint16(len(d.id))), d.id...), cose...)
	object := []byte("\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x59")
	object = append(binary.BigEndian.AppendUint16(object, uint16(len(data))), data...)
	return d.answer(map[string]string{"clientDataJSON": encode(d.clientData("webauthn.create", o.Challenge)),
		"attestationObject": encode(object)})
}

// get answers the options of a sign-in page.
func (d *device) get(options string) string {
	var o struct{ Challenge string }
	_ = json.Unmarshal([]byte(options), &o)
	client, data := d.clientData("webauthn.get", o.Challenge), d.authenticatorData(d.flags)
	hash := sha256.Sum256(client)
	sum := sha256.Sum256(append(data[:len(data):len(data)], hash[:]...))
	signature, _ := ecdsa.SignASN1(rand.Reader, d.key, sum[:])
	return d.answer(map[string]string{"clientDataJSON": encode(client), "authenticatorData": encode(data),
		"signature": encode(signature), "userHandle": d.user})
}

var (
	shownGet       = regexp.MustCompile(`data-get="([^"]*)"`)
	shownCreate    = regexp.MustCompile(`data-create="([^"]*)"`)
	shownChallenge = regexp.MustCompile(`name="challenge" value="([^"]*)"`)
)

// addPasskey registers the device for the signed-in user.
func (v *visitor) addPasskey(d *device, pairs ...string) *http.Response {
	v.t.Helper()
	v.get("/account/security")
	options := html.UnescapeString(find(shownCreate, v.page))
	return v.post("/account/passkeys", append([]string{"challenge", find(shownChallenge, v.page), "name", "laptop",
		"password", password, "answer", d.create(options)}, pairs...)...)
}

// signInWithPasskey opens the sign-in page and lets the device answer.
func (v *visitor) signInWithPasskey(d *device) *http.Response {
	v.t.Helper()
	v.expect(v.get("/signin?next=/account/keys"), http.StatusOK, "Sign in with a passkey")
	options := html.UnescapeString(find(shownGet, v.page))
	return v.post("/signin/passkey", "challenge", find(shownChallenge, v.page), "next", "/account/keys",
		"answer", d.get(options))
}

func TestAPasskeySignsInWithoutPasswordAndCode(t *testing.T) {
	h := newFixture(t)
	h.demanded = true // of administrators, who need no other second factor then
	d, v := newDevice(t), h.signedIn("anna")
	v.sentTo(v.addPasskey(d), "/account/security?done=passkey_added")
	v.expect(v.get("/account/security"), http.StatusOK, "Passkey: laptop")
	if _, err := h.registry.SetAdmin(t.Context(), h.anna.ID, true); err != nil {
		t.Fatal(err)
	}
	other := h.visitor()
	other.sentTo(other.signInWithPasskey(d), "/account/keys")
	other.expect(other.get("/admin/users"), http.StatusOK, "anna")
	v.sentTo(v.get("/account"), "/account/second-factor") // the password alone does not suffice
	id := find(regexp.MustCompile(`/account/identities/(pky_[^/]+)/unlink`), func() string {
		other.get("/account/security")
		return other.page
	}())
	other.expect(other.post("/account/identities/"+id+"/unlink", "password", "no"), http.StatusForbidden, "wrong")
	other.sentTo(other.post("/account/identities/"+id+"/unlink", "password", password),
		"/account/security?done=identity_unlinked")
	third := h.visitor()
	third.expect(third.signInWithPasskey(d), http.StatusForbidden, "This passkey is not accepted here.")
}

func TestAPasskeyIsAddedAfterAConfirmationOnly(t *testing.T) {
	h := newFixture(t)
	d, v := newDevice(t), h.signedIn("anna")
	v.expect(v.addPasskey(d, "password", "wrong"), http.StatusForbidden, "The password is wrong")
	v.expect(v.addPasskey(d, "name", ""), http.StatusUnprocessableEntity, "must have 1 to 100 characters")
	v.expect(v.addPasskey(d, "answer", "{}"), http.StatusForbidden, "no passkey that can be used here")
	unverified := newDevice(t)
	unverified.flags = present
	v.expect(v.addPasskey(unverified), http.StatusForbidden, "no passkey that can be used here")
	long := newDevice(t)
	long.more = strings.Repeat("x", 16<<10)
	v.expect(v.addPasskey(long), http.StatusForbidden, "no passkey that can be used here")
	v.sentTo(v.addPasskey(d), "/account/security?done=passkey_added")
	v.expect(v.addPasskey(d), http.StatusConflict, "This passkey is there already.")
	// A challenge of one browser is worth nothing in another one.
	root := h.signedIn("root")
	v.get("/account/security")
	challenge := find(shownChallenge, v.page)
	root.expect(root.addPasskey(newDevice(t), "challenge", challenge), http.StatusForbidden, "took too long")
	if n := len(h.registry.Passkeys(h.anna.ID)); n != 1 {
		t.Errorf("anna has %d passkeys", n)
	}
}

func TestAnAnswerOfAPasskeyThatIsNotForThisChallengeIsRefused(t *testing.T) {
	h := newFixture(t)
	d, v := newDevice(t), h.signedIn("anna")
	d.count = 5
	v.sentTo(v.addPasskey(d), "/account/security?done=passkey_added")
	copies := 0
	for name, change := range map[string]func(*device){
		"the user is not verified": func(d *device) { d.flags = present },
		"the page of another site": func(d *device) { d.origin = "https://gateway.example.evil" },
		"the key of another site":  func(d *device) { d.rp = "gateway.example.evil" },
		"another key":              func(d *device) { d.key = newDevice(t).key },
		"another user":             func(d *device) { d.user = encode([]byte("user 2")) },
		"an unknown passkey":       func(d *device) { d.id = []byte("unknown") },
		"a copy of the device":     func(d *device) { d.count = 5 },
		"a copy that forgot":       func(d *device) { d.count = 0 },
		"a key that is synced now": func(d *device) { d.flags |= 0x08 },
	} {
		changed := *d
		changed.count = 6
		change(&changed)
		guest := h.visitor()
		guest.expect(guest.signInWithPasskey(&changed), http.StatusForbidden, "This passkey is not accepted here.")
		if t.Failed() {
			t.Fatal(name)
		}
		recorded := h.audited(state.AuditQuery{Action: "sign_in.fail"})
		if strings.HasPrefix(name, "a copy") {
			copies++
			text, _ := json.Marshal(recorded[0])
			if recorded[0].Target.Name != "anna" || !strings.Contains(string(text), "copy of the device") {
				t.Errorf("%s: recorded is %s", name, text)
			}
		}
		if len(recorded) != copies {
			t.Errorf("%s: %d failures are recorded, want %d", name, len(recorded), copies)
		}
	}
	d.count = 6
	thief, owner := h.visitor(), h.visitor()
	thief.get("/signin")
	options, challenge := html.UnescapeString(find(shownGet, thief.page)), find(shownChallenge, thief.page)
	owner.get("/signin")
	owner.expect(owner.post("/signin/passkey", "challenge", challenge, "answer", d.get(options)),
		http.StatusForbidden, "belongs to another browser")
	guest := map[string]string{}
	for name, value := range thief.cookies {
		guest[name] = value
	}
	page := thief.page
	thief.sentTo(thief.post("/signin/passkey", "challenge", challenge, "answer", d.get(options)), "/account")
	d.count = 7 // the same challenge again, with a fresh signature
	again := &visitor{fixture: h, cookies: guest, page: page}
	again.expect(again.post("/signin/passkey", "challenge", challenge, "answer", d.get(options)),
		http.StatusForbidden, "was used already")
	if _, err := h.registry.SetUserStatus(t.Context(), h.anna.ID, tokens.StatusDisabled); err != nil {
		t.Fatal(err)
	}
	owner.expect(owner.signInWithPasskey(d), http.StatusForbidden, "This account is disabled.")
	if n := len(h.audited(state.AuditQuery{Action: "sign_in.fail"})); n != copies+1 {
		t.Errorf("%d failures are recorded: the disabled user is missing, or a form that was sent twice is there", n)
	}
}

func TestAnAnswerOfAPasskeyThatIsSentTwiceIsNoCopyOfTheDevice(t *testing.T) {
	h := newFixture(t)
	d, v := newDevice(t), h.signedIn("anna")
	d.count = 5
	v.sentTo(v.addPasskey(d), "/account/security?done=passkey_added")
	d.count = 6
	first := h.visitor()
	first.get("/signin")
	second := &visitor{fixture: h, cookies: maps.Clone(first.cookies), page: first.page}
	form := []string{"challenge", find(shownChallenge, first.page),
		"answer", d.get(html.UnescapeString(find(shownGet, first.page)))}
	first.sentTo(first.post("/signin/passkey", form...), "/account")
	second.expect(second.post("/signin/passkey", form...), http.StatusForbidden, "was used already")
	if n := len(h.audited(state.AuditQuery{Action: "sign_in.fail"})); n != 0 {
		t.Errorf("%d failures are recorded", n)
	}
}

func TestAnErasedUserHasNoPasskeys(t *testing.T) {
	h := newFixture(t)
	d, v := newDevice(t), h.signedIn("anna")
	v.sentTo(v.addPasskey(d), "/account/security?done=passkey_added")
	if _, err := h.registry.EraseUser(t.Context(), h.anna.ID); err != nil {
		t.Fatal(err)
	}
	guest := h.visitor()
	guest.expect(guest.signInWithPasskey(d), http.StatusForbidden, "This passkey is not accepted here.")
	if strings.Contains(guest.page, "anna") {
		t.Error("the page names the user")
	}
}

func TestAUserRenamesAnOwnPasskey(t *testing.T) {
	h := newFixture(t)
	v, root := h.signedIn("anna"), h.signedIn("root")
	v.addPasskey(newDevice(t))
	path := "/account/passkeys/" + h.registry.Passkeys(h.anna.ID)[0].ID + "/rename"
	v.get("/account/security")
	v.expect(v.post(path, "name", " "), http.StatusUnprocessableEntity, "must have 1 to 100 characters")
	v.sentTo(v.post(path, "name", "work phone"), "/account/security?done=passkey_renamed")
	v.expect(v.get("/account/security"), http.StatusOK, "Passkey: work phone")
	root.get("/account/security")
	root.expect(root.post(path, "name", "mine"), http.StatusNotFound, "Not found")
	if name := h.registry.Passkeys(h.anna.ID)[0].Name; name != "work phone" {
		t.Errorf("the passkey is %q", name)
	}
}
