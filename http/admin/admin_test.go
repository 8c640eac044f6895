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
	path = filepath.Join(t.TempDir(), admin.SocketName)
	l, err := admin.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		admin.Serve(ctx, l, s, adminapi.New(adminapi.Options{}), recordings(),
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
	admin.Handler(s, adminapi.New(adminapi.Options{}), nil).
		ServeHTTP(w, httptest.NewRequest("POST", "/keys", strings.NewReader("{")))
	if w.Code != 400 || !strings.Contains(w.Body.String(), "must be a key") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w = httptest.NewRecorder()
	body := strings.NewReader(`{"path":"relative","Path":"` + t.TempDir() + `/copy"}`)
	admin.Handler(s, adminapi.New(adminapi.Options{}), nil).
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
	if err := c.AddKey(t.Context(), newKey(t, "key_1")); err == nil ||
		!strings.Contains(err.Error(), "disk is nearly full") {
		t.Error(err)
	}
}
