package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"stagedoor/http/adminapi"
)

// printed decodes what a command printed with --json.
func printed[T any](t *testing.T, args ...string) (v T) {
	t.Helper()
	r := command(t, nil, append(args, "--json")...)
	if err := json.Unmarshal([]byte(r.out), &v); err != nil {
		t.Fatalf("%v printed %q and %q", args, r.out, r.errOut)
	}
	return v
}

func TestUsersAndAppsOfAStoppedAndOfARunningGateway(t *testing.T) {
	t.Parallel()
	data := filepath.Join(directory(t), "data")
	command(t, nil, "users", "list", "--data", data).check(t, exitStorage, "", "there is no data directory")
	anna := printed[adminapi.CreatedUser](t, "users", "create", "anna", "--email", "anna@example.com", "--data", data)
	if anna.ID == 0 || len(anna.Password) < 16 {
		t.Errorf("created %+v", anna)
	}
	command(t, nil, "users", "create", "Anna", "--data", data).check(t, exitFailure, "", "username: is taken")

	p := launch(t, filepath.Dir(data), "serve", "--listen", "127.0.0.1:0", "--data", data)
	defer p.stop()
	bob := printed[adminapi.CreatedUser](t, "users", "create", "bob", "--data", data)
	list := command(t, nil, "users", "list", "--data", data)
	list.check(t, exitOK, "bob", "")
	if !strings.Contains(list.out, "anna@example.com") || strings.Contains(list.out, bob.Password) {
		t.Errorf("the list is\n%s", list.out)
	}
	made := printed[adminapi.AppSecret](t, "apps", "create", "Weather", "--owner", "anna", "--redirect-uri",
		"http://127.0.0.1:9999/cb", "--data", data)
	if made.ClientID == "" || made.Secret == "" || made.Owner != "anna" {
		t.Errorf("registered %+v", made)
	}
	command(t, nil, "apps", "create", "Weather", "--owner", "carol", "--redirect-uri", "http://127.0.0.1/",
		"--data", data).check(t, exitFailure, "", "there is no such user")
	command(t, nil, "apps", "create", "Weather", "--owner", "anna", "--redirect-uri", "http://example.com/",
		"--data", data).check(t, exitFailure, "", "redirect_uri: must be https")
	command(t, nil, "apps", "create").check(t, exitUsage, "", "takes the name of one app, got 0 arguments")

	token := printed[adminapi.DeveloperToken](t, "users", "developer-token", "anna", "--data", data)
	res := p.post("/api/oauth_apps", token.Token, `{"name": "Notes", "redirect_uri": "https://notes.example.com/cb"}`)
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("registration is answered %d", res.StatusCode)
	}
}

// composed returns the gateway's configuration in a compose file of deploy.
func composed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Configs struct {
			Stagedoor struct{ Content string }
		}
	}
	if err := yaml.Unmarshal(text, &compose); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(compose.Configs.Stagedoor.Content, "$$", "$")
}

// TestTheComposeFileMakesTheAdministratorOfTheEnvironment starts the gateway with the configuration in
// deploy/compose.yaml, twice with different passwords, of which the first one counts.
func TestTheComposeFileMakesTheAdministratorOfTheEnvironment(t *testing.T) {
	folder := directory(t)
	file, data := filepath.Join(folder, "compose.yaml"), filepath.Join(folder, "data")
	if err := os.WriteFile(file, []byte(composed(t, "compose.yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GATEWAY_ADMIN", "anna")
	for _, password := range []string{"the first password", "another password"} {
		t.Setenv("GATEWAY_ADMIN_PASSWORD", password)
		p := launch(t, folder, "serve", "--config", file, "--listen", "127.0.0.1:0", "--data", data)
		list := command(t, nil, "users", "show", "anna", "--data", data, "--json")
		list.check(t, exitOK, `"admin": true`, "")
		if strings.Contains(p.out.String()+p.errOut.String(), password) {
			t.Error("the password was printed")
		}
		p.stop()
	}
	short := map[string]string{"GATEWAY_ADMIN": "anna", "GATEWAY_ADMIN_PASSWORD": "short"}
	command(t, short, "config", "check", file).check(t, exitConfig, "", "admin.password: expected 8 to 512 bytes")
}

func TestUsersBecomeAdminsByCommandAlone(t *testing.T) {
	data := filepath.Join(directory(t), "data")
	if u := printed[adminapi.CreatedUser](t, "users", "create", "root", "--admin", "--data", data); !u.Admin {
		t.Errorf("created %+v", u)
	}
	if u := printed[adminapi.CreatedUser](t, "users", "create", "anna", "--data", data); u.Admin {
		t.Errorf("created %+v", u)
	}
	command(t, nil, "users", "update", "anna", "--data", data).check(t, exitUsage, "", "say what to change")
	command(t, nil, "users", "update", "carol", "--admin", "--data", data).check(t, exitFailure, "",
		"there is no such user")
	p := launch(t, filepath.Dir(data), "serve", "--listen", "127.0.0.1:0", "--data", data)
	defer p.stop()
	for _, step := range []struct {
		flags []string
		want  adminapi.User
	}{
		{[]string{"--admin", "--email", "anna@example.com"},
			adminapi.User{Admin: true, Status: 1, Email: "anna@example.com"}},
		{[]string{"--disabled"}, adminapi.User{Admin: true, Status: 2, Email: "anna@example.com"}},
		{[]string{"--disabled=false", "--admin=false"}, adminapi.User{Status: 1, Email: "anna@example.com"}},
	} {
		got := printed[adminapi.CreatedUser](
			t,
			append([]string{"users", "update", "anna", "--data", data}, step.flags...)...)
		if got.Admin != step.want.Admin || got.Status != step.want.Status || got.Email != step.want.Email {
			t.Errorf("%v: %+v", step.flags, got)
		}
	}
}

func TestMetadataNamesTheConfiguredIssuerOrTheListener(t *testing.T) {
	p := launch(t, directory(t), "serve", "--listen", "127.0.0.1:0", "--data", "memory")
	defer p.stop()
	res, err := http.Get(p.URL + "/.well-known/oauth-authorization-server")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var m struct{ Issuer string }
	if err := json.NewDecoder(res.Body).Decode(&m); err != nil || m.Issuer != p.URL {
		t.Errorf("issuer %q: %v, want %q", m.Issuer, err, p.URL)
	}
}

func TestRefusalsOfNoHandlerLookLikeTheServices(t *testing.T) {
	p := launch(t, directory(t), "serve", "--listen", "127.0.0.1:0", "--data", "memory")
	defer p.stop()
	for request, want := range map[string]struct {
		status int
		body   string
	}{
		"PUT /api/oauth2/token":  {405, `{"error":"invalid_request"`},
		"GET /api/oauth2/token":  {405, `{"error":"invalid_request"`},
		"GET /api/oauth2/none":   {404, `{"error":"invalid_request"`},
		"GET /api/oauth_apps":    {405, `{"success":false,"message":`},
		"GET /assets/none":       {404, `{"error":{"message":`},
		"GET /api/oauth2/topup":  {401, `{"error":"invalid_token"`},
		"POST /api/oauth2/token": {400, `{"error":"invalid_request"`},
	} {
		method, path, _ := strings.Cut(request, " ")
		req, err := http.NewRequest(method, p.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != want.status || !strings.HasPrefix(string(body), want.body) ||
			(want.status == 405) != (res.Header.Get("Allow") != "") {
			t.Errorf("%s: %d %s, want %d %s", request, res.StatusCode, body, want.status, want.body)
		}
	}
}
