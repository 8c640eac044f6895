package portal_test

import (
	"bytes"
	"image"
	"image/png"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/tokens"
)

const appCallback = "https://app.example.com/cb"

// upload sends a form with a file to the page of an app.
func (v *visitor) upload(path, token string, file []byte) *http.Response {
	v.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	form.WriteField("token", token)
	part, err := form.CreateFormFile("logo", "logo.png")
	if err != nil {
		v.t.Fatal(err)
	}
	part.Write(file)
	form.Close()
	r := httptest.NewRequest(http.MethodPost, origin+path, &body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	return v.do(r)
}

func TestAnAppIsRegisteredChangedAndDeletedOnItsPage(t *testing.T) {
	h := newFixture(t)
	v := h.signedIn("anna")
	v.expect(v.get("/account/apps"), http.StatusOK, "Register an app")
	v.expect(v.post("/account/apps", "name", "Notes", "addresses", "http://notes.example/"),
		http.StatusUnprocessableEntity, "must be https")
	if !strings.Contains(v.page, "http://notes.example/") {
		t.Error("what was typed is lost")
	}
	const hostile = `<img src=x onerror=alert(1)>"'`
	v.expect(v.post("/account/apps", "name", hostile, "description", "</textarea><script>",
		"addresses", appCallback+"\r\nhttps://b.example/cb"), http.StatusOK, "not shown again")
	secret := regexp.MustCompile(`as_[\w-]+`).FindString(v.page)
	all := h.registry.Apps(h.anna.ID)
	if len(all) != 1 || len(all[0].RedirectURIs) != 2 || !strings.HasSuffix(secret, all[0].SecretEnd) {
		t.Fatalf("%+v", all)
	}
	path := "/account/apps/1"
	for _, page := range []string{path, "/account/apps"} {
		v.get(page)
		if strings.Contains(v.page, "<img src=x") || strings.Contains(v.page, "<script>") ||
			strings.Contains(v.page, secret) || !strings.Contains(v.page, "&lt;img src=x") {
			t.Errorf("%s shows the secret, or names that are no text:\n%s", page, v.page)
		}
	}
	v.expect(v.get(path), http.StatusOK, "…"+all[0].SecretEnd)
	v.expect(v.post(path+"/settings", "name", "Notes", "addresses", "https://c.example/#f"),
		http.StatusUnprocessableEntity, "https://c.example/#f")
	v.sentTo(v.post(path+"/settings", "name", "Notes", "description", "Keeps\r\nnotes", "addresses", appCallback),
		path+"?done=app_changed")
	v.expect(v.get(path), http.StatusOK, "Keeps\nnotes")

	var file bytes.Buffer
	if err := png.Encode(&file, image.NewGray(image.Rect(0, 0, 20, 20))); err != nil {
		t.Fatal(err)
	}
	token := find(hiddenToken, v.page)
	v.expect(v.upload(path+"/logo", "forged", file.Bytes()), http.StatusForbidden, "start again")
	v.expect(v.upload(path+"/logo", token, []byte("<svg/>")), http.StatusUnprocessableEntity, "PNG or JPEG")
	v.expect(v.upload(path+"/logo", token, nil), http.StatusUnprocessableEntity, "PNG or JPEG")
	v.expect(v.upload(path+"/logo", token, make([]byte, 400<<10)), http.StatusRequestEntityTooLarge, "")
	v.expect(v.post(path+"/logo"), http.StatusBadRequest, "broken")
	v.sentTo(v.upload(path+"/logo", token, file.Bytes()), path+"?done=app_changed")
	v.expect(v.get(path), http.StatusOK, `<img class="logo" src="/api/oauth2/logos/ci_`)
	v.sentTo(v.post(path+"/remove-logo"), path+"?done=app_changed")

	v.get(path)
	v.expect(v.post(path+"/secret", "overlap", "7d"), http.StatusOK, "The old secret works until")
	v.expect(v.get(path), http.StatusOK, "End it now")
	v.sentTo(v.post(path+"/end-secret"), path+"?done=app_changed")
	v.get(path)
	v.expect(v.post(path+"/secret", "overlap", "9d"), http.StatusBadRequest, "broken")
	v.get(path)
	v.expect(v.post(path+"/delete", "name", "notes"), http.StatusUnprocessableEntity, "Type the name")
	v.sentTo(v.post(path+"/delete", "name", "Notes"), "/account/apps?done=app_deleted")
	v.expect(v.get("/account/apps?done=app_deleted"), http.StatusOK, "The app was deleted")
	v.expect(v.get(path), http.StatusNotFound, "Not found")
}

func TestAUserWhoMayCreateNoKeysChangesNoAppAndGetsNoSecret(t *testing.T) {
	h := newFixture(t)
	v := h.signedIn("anna")
	v.get("/account/apps")
	v.expect(v.post("/account/apps", "name", "Notes", "addresses", appCallback), http.StatusOK, "not shown again")
	no := false
	if _, err := h.registry.UpdateUser(t.Context(), h.anna.ID,
		tokens.UserChange{Ceiling: tokens.CeilingChange{CreateKeys: &no}}); err != nil {
		t.Fatal(err)
	}
	before, _ := h.registry.App(1)
	v.get("/account/apps/1")
	v.expect(v.post("/account/apps/1/settings", "name", "Other", "addresses", appCallback+" https://b.example/cb"),
		http.StatusForbidden, "may not create keys")
	v.get("/account/apps/1")
	v.expect(v.post("/account/apps/1/secret", "overlap", "0"), http.StatusForbidden, "may not create keys")
	after, _ := h.registry.App(1)
	if !reflect.DeepEqual(before, after) {
		t.Errorf("the app changed from %+v to %+v", before, after)
	}
	if _, _, err := h.registry.RotateSecret(t.Context(), 1, time.Hour); err != nil {
		t.Errorf("an operator rotates the secret: %v", err)
	}
	for _, ending := range []string{"end-secret", "remove-logo"} {
		v.get("/account/apps/1")
		v.sentTo(v.post("/account/apps/1/"+ending), "/account/apps/1?done=app_changed")
	}
	v.get("/account/apps/1")
	v.sentTo(v.post("/account/apps/1/delete", "name", "Notes"), "/account/apps?done=app_deleted")
}

func TestAnAppOfAnotherUserDoesNotExist(t *testing.T) {
	h := newFixture(t)
	h.user("bob", false)
	_, a, err := h.registry.RegisterApp(t.Context(), tokens.NewApp{Owner: h.anna.ID, Name: "Notes",
		RedirectURI: appCallback})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bob", "root"} {
		v := h.signedIn(name)
		v.expect(v.get("/account/apps/1"), http.StatusNotFound, "Not found")
		for _, action := range []string{"settings", "remove-logo", "secret", "end-secret", "delete"} {
			v.get("/account")
			v.expect(v.post("/account/apps/1/"+action, "name", "Notes", "overlap", "0", "addresses", "https://e.org/"),
				http.StatusNotFound, "Not found")
		}
		v.get("/account")
		res := v.upload("/account/apps/1/logo", find(hiddenToken, v.page), []byte("x"))
		v.expect(res, http.StatusNotFound, "Not found")
		if v.get("/account/apps"); strings.Contains(v.page, "Notes") {
			t.Errorf("%s sees the app of another user", name)
		}
	}
	if got, err := h.registry.App(a.ID); err != nil || got.SecretEnd != a.SecretEnd || got.RedirectURI != appCallback {
		t.Errorf("another user changed the app: %+v, %v", got, err)
	}
}

func TestAUserWhoMayCreateNoKeysRegistersNoApp(t *testing.T) {
	h := newFixture(t)
	no := false
	if _, err := h.registry.UpdateUser(t.Context(), h.anna.ID,
		tokens.UserChange{Ceiling: tokens.CeilingChange{CreateKeys: &no}}); err != nil {
		t.Fatal(err)
	}
	v := h.signedIn("anna")
	v.get("/account/apps?new=1")
	if strings.Contains(v.page, `name="addresses"`) {
		t.Error("the form is shown")
	}
	h.user("bob", false)
	id := h.signedIn("bob")
	id.get("/account/apps")
	v.get("/account")
	v.expect(v.post("/account/apps", "id", find(hiddenID, id.page), "name", "x", "addresses", appCallback),
		http.StatusForbidden, "may not register apps")
	if len(h.registry.Apps(h.anna.ID)) != 0 {
		t.Error("an app was registered")
	}
}
