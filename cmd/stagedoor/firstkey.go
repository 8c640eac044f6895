package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"stagedoor/cmd/stagedoor/admincli"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/auth"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal/fsync"
	"stagedoor/state/ownership"
)

// firstKeyName is the file in the data directory that holds the first key. The store has hashes of keys only, and the
// first key is to be printed at each start.
const firstKeyName = "first-key"

// firstKey is the key that the gateway made at its first start.
type firstKey struct{ id, secret string }

// findFirstKey returns the first key while it can be used. It makes one if there is no key at all, neither in the
// store nor in the configuration, and returns nil if the first key was revoked or there never was one.
func findFirstKey(ctx context.Context, s *state.State, data string, keysInFile bool) (*firstKey, error) {
	path := filepath.Join(data, firstKeyName)
	secret, err := readFirstKey(data, path)
	if err != nil {
		return nil, err
	}
	if key, ok := identity.AccessOf(s).Key(state.HashSecret(secret)); ok && secret != "" {
		switch key.State(s.Now()) {
		case "revoked", "expired":
			return nil, os.Remove(path) // for good: the file is of no use any more
		case "active":
			return &firstKey{key.ID, secret}, nil
		}
		return nil, nil
	}
	if keysInFile || identity.HasKeys(s.View()) {
		return nil, nil
	}
	secret, key, err := admincli.NewKey("first")
	if err != nil {
		return nil, err
	}
	// The file comes first, because the key would be unusable if the process died before its secret was kept.
	if data != "memory" {
		if err := writeFirstKey(path, secret); err != nil {
			return nil, datadir.Unavailable(err)
		}
	}
	// The check is repeated in the transaction, because two gateways of one database may start at the same time.
	added, err := state.Do(ctx, s, func(tx *state.Tx) (bool, error) {
		if identity.HasKeys(tx.View()) {
			return false, nil // another gateway of the database has made it at the same time
		}
		return true, identity.AddKey(tx, key)
	})
	switch {
	case err != nil:
		return nil, err
	case added:
		return &firstKey{key.ID, secret}, nil
	case data == "memory":
		return nil, nil
	}
	return nil, os.Remove(path)
}

// readFirstKey returns "" if there is no file.
func readFirstKey(data, path string) (string, error) {
	if data == "memory" {
		return "", nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", datadir.Unavailable(err)
	}
	defer f.Close()
	const most = 256
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return "", datadir.Unavailable(err)
	}
	return strings.TrimSpace(string(text)), nil
}

// writeFirstKey makes the file in one step, readable for its owner only.
func writeFirstKey(path, secret string) error {
	f, err := os.CreateTemp(filepath.Dir(path), firstKeyName+"-*") // with mode 600
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, secret+"\n")
	if err = errors.Join(err, ownership.File(f), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return fsync.Dir(filepath.Dir(path))
}

// firstKeyFor returns the first key for the page at /, if that may show it to the sender of r, and else "". The page
// may show it only to a browser on this machine, only while there is no user, and only on a gateway without a
// configuration file, which answers from the simulator: a reverse proxy whose headers do not give it away must not
// publish a key that costs money.
func (g *gateway) firstKeyFor(r *http.Request) string {
	first := g.first.Load()
	if first == nil || !auth.FromThisMachine(r) {
		return ""
	}
	v := g.state.View()
	k, err := identity.FindKey(v, first.id)
	if err != nil || k.State(v.Now()) != "active" || len(identity.ListUsers(v, 0, 1)) > 0 {
		return ""
	}
	return first.secret
}
