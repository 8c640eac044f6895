package admin_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/tokens"
	"stagedoor/http/admin"
	"stagedoor/http/adminapi"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/schema"
)

func open(t *testing.T) *state.State {
	s, err := schema.Open(journal.NewMemory(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func newKey(t *testing.T, id string) identity.Key {
	_, prefix, hash, err := identity.NewSecret(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return identity.Key{ID: id, Prefix: prefix, Hash: hash, Name: id, Scopes: []string{}, Enabled: true}
}

// serve runs the API on a socket until the test ends.
func serve(t *testing.T, s *state.State) (path string) {
	t.Helper()
	registry, err := tokens.Start(tokens.Options{System: kittest.Start(t), State: s, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), admin.SocketName)
	l, err := admin.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		admin.Serve(ctx, l, s, registry, adminapi.New(adminapi.Options{}), recordings(),
			slog.New(slog.DiscardHandler))
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return path
}

func TestKeysAreManagedThroughTheSocket(t *testing.T) {
	s := open(t)
	c, err := admin.Dial(serve(t, s))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	k := newKey(t, "key_1")
	if err := c.AddKey(ctx, k); err != nil {
		t.Fatal(err)
	}
	if found, ok := identity.AccessOf(s).Key(k.Hash); !ok || found.ID != "key_1" || found.Scopes == nil {
		t.Errorf("the store has %+v, %v", found, ok)
	}
}

func TestInvalidRequestsAreRefused(t *testing.T) {
	s := open(t)
	c, err := admin.Dial(serve(t, s))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	k := newKey(t, "key_1")
	if err := c.AddKey(ctx, k); err != nil {
		t.Fatal(err)
	}
	if err := c.AddKey(ctx, k); err == nil {
		t.Error("the same key twice")
	}
	k.ID, k.Scopes = "key_2", []string{"fly"}
	if err := c.AddKey(ctx, k); err == nil {
		t.Error("an unknown scope")
	}
	k.Scopes, k.User = nil, "unknown"
	if err := c.AddKey(ctx, k); err == nil || !strings.Contains(err.Error(), `there is no user "unknown"`) {
		t.Errorf("an unknown user: got %v", err)
	}
	w := httptest.NewRecorder()
	admin.Handler(s, nil, adminapi.New(adminapi.Options{}), nil).
		ServeHTTP(w, httptest.NewRequest("POST", "/keys", strings.NewReader("{")))
	if w.Code != 400 || !strings.Contains(w.Body.String(), "must be a key") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w = httptest.NewRecorder()
	body := strings.NewReader(`{"path":"relative","Path":"` + t.TempDir() + `/copy"}`)
	admin.Handler(s, nil, adminapi.New(adminapi.Options{}), nil).
		ServeHTTP(w, httptest.NewRequest("POST", "/backups", body))
	if w.Code != 400 {
		t.Errorf("Path was read as path: %d %s", w.Code, w.Body)
	}
}

func TestOnlyTheOwnerMayUseTheSocketAndALeftoverIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), admin.SocketName)
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Dial(path); err == nil {
		t.Error("a leftover socket answers")
	}
	l, err := admin.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestUsersAndAppsAreManagedThroughTheSocket(t *testing.T) {
	c, err := admin.Dial(serve(t, open(t)))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	u, err := c.AddUser(ctx, admin.Person{Username: "anna", Email: "anna@example.com", Password: "long enough"})
	if err != nil || u.ID == 0 || u.Username != "anna" || u.Password != "" || u.Status != tokens.StatusActive {
		t.Fatalf("user %+v: %v", u, err)
	}
	a, err := c.AddApp(ctx, admin.App{Owner: "ANNA", Name: "App", RedirectURI: "https://app.example.com/cb"})
	if err != nil || a.ClientID == "" || a.Secret == "" || a.Owner != "anna" {
		t.Errorf("app %+v: %v", a, err)
	}
	d, err := c.AddDeveloperToken(ctx, admin.DeveloperToken{User: "anna", Name: "laptop"})
	if err != nil || d.Token == "" {
		t.Errorf("developer token %+v: %v", d, err)
	}
	for want, call := range map[string]func() error{
		"the username is taken": func() error {
			_, err := c.AddUser(ctx, admin.Person{Username: "Anna", Password: "long enough"})
			return err
		},
		"password must": func() error {
			_,
				err := c.AddUser(ctx, admin.Person{Username: "bob", Password: "short"})
			return err
		},
		"there is no such user": func() error {
			_,
				err := c.AddApp(ctx, admin.App{Owner: "bob", Name: "App"})
			return err
		},
		"redirect_uri must": func() error {
			_, err := c.AddApp(ctx, admin.App{Owner: "anna", Name: "App", RedirectURI: "http://a.example/"})
			return err
		},
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// fullStore is a store whose disk is full.
type fullStore struct{ journal.Store }

func (fullStore) Commit(context.Context, []journal.Batch) (journal.LSN, error) {
	return 0, fmt.Errorf("%w: too little disk space", journal.ErrReadOnly)
}

func TestFullDiskIsReportedToTheOperator(t *testing.T) {
	s, err := schema.Open(fullStore{journal.NewMemory()}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c, err := admin.Dial(serve(t, s))
	if err != nil {
		t.Fatal(err)
	}
	_, userErr := c.AddUser(t.Context(), admin.Person{Username: "anna", Password: "correct horse battery"})
	for what, err := range map[string]error{"key": c.AddKey(t.Context(), newKey(t, "key_1")), "user": userErr} {
		if err == nil || !strings.Contains(err.Error(), "disk is nearly full") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
