package tokens_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"stagedoor/actors/kit"
	"stagedoor/actors/tokens"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/statetest"
	"stagedoor/state/statetest/ondisk"
)

const crashWriters = 8

func TestMain(m *testing.M) {
	if statetest.Child(writeUntilKilled) {
		return
	}
	goleak.VerifyTestMain(m)
}

// open starts a registry on a directory.
func open(dir string) (*tokens.Client, *state.State, func(), error) {
	s, end, err := ondisk.Open(dir)
	if err != nil {
		return nil, nil, nil, err
	}
	sys := kit.NewSystem(kit.Options{Logger: slog.New(slog.DiscardHandler)})
	c, err := tokens.Start(tokens.Options{System: sys, State: s, Now: time.Now})
	return c, s, func() { _ = errors.Join(sys.Stop(ctx), end()) }, err
}

// writeUntilKilled goes through the protocol, and says what was acknowledged: who, which step, and what came of it.
func writeUntilKilled(dir string, say statetest.PrintLine) error {
	c, s, _, err := open(dir)
	if err != nil {
		return err
	}
	failures := make(chan error, crashWriters)
	for w := range crashWriters {
		go func() { failures <- live(c, s, fmt.Sprintf("%d-%d", os.Getpid(), w), say) }()
	}
	return <-failures
}

// live is one writer: a user with an app, and one grant after the other. Every
// second one is revoked.
func live(c *tokens.Client, s *state.State, who string, say statetest.PrintLine) error {
	u, err := state.Do(ctx, s, func(tx *state.Tx) (identity.User, error) {
		return identity.AddUser(tx, identity.User{Username: who, Status: identity.UserActive})
	})
	if err != nil {
		return err
	}
	secret, app, err := c.RegisterApp(ctx, tokens.NewApp{Owner: u.ID, Name: who, RedirectURI: callback})
	if err != nil {
		return err
	}
	say(who, "app", app.ClientID, secret)
	creds := tokens.ClientCredentials{ID: app.ClientID, Secret: secret}
	for n := 0; ; n++ {
		code, err := c.Approve(
			ctx,
			tokens.Approval{
				User:        u.ID,
				ClientID:    app.ClientID,
				RedirectURI: callback,
				Scopes:      tokens.Scopes(),
				Consented:   true,
			},
		)
		if err != nil {
			return err
		}
		say(who, "code", code)
		pair, err := c.Exchange(ctx, tokens.Exchange{Client: creds, Code: code, RedirectURI: callback})
		for range 3 {
			if err != nil {
				return err
			}
			say(who, "pair", pair.Access, pair.Refresh)
			pair, err = c.Refresh(ctx, tokens.Refresh{Client: creds, Token: pair.Refresh})
		}
		if err != nil {
			return err
		}
		say(who, "pair", pair.Access, pair.Refresh)
		if n%2 == 0 {
			if err := c.Revoke(ctx, creds, pair.Refresh); err != nil {
				return err
			}
			say(who, "dead")
		}
	}
}

// answered has the replies that one writer got.
type answered struct {
	creds    tokens.ClientCredentials
	families []*answeredFamily
}

type answeredFamily struct {
	code  string
	pairs []tokens.Tokens
	dead  bool
}

func TestKilledRegistryForgetsNothingItAcknowledged(t *testing.T) {
	dir, cycles := t.TempDir(), 6
	if testing.Short() {
		cycles = 2
	}
	writers, acknowledged := map[string]*answered{}, 0
	for range cycles {
		acknowledged += statetest.Kill(t, dir, func(line string) {
			if !record(writers, strings.Fields(line)) {
				t.Errorf("child: %s", line)
			}
		})
		checkAnswered(t, dir, writers)
		clear(writers) // what was checked was used up by that
	}
	if acknowledged < 100*cycles {
		t.Errorf("only %d acknowledged steps: nothing was tested", acknowledged)
	}
	t.Logf("%d acknowledged steps survived %d kills", acknowledged, cycles)
}

func record(writers map[string]*answered, words []string) bool {
	if len(words) < 2 {
		return false
	}
	w := writers[words[0]]
	if words[1] == "app" {
		writers[words[0]] = &answered{creds: tokens.ClientCredentials{ID: words[2], Secret: words[3]}}
		return true
	}
	if words[1] == "code" {
		w.families = append(w.families, &answeredFamily{code: words[2]})
		return true
	}
	last := w.families[len(w.families)-1]
	if words[1] == "dead" {
		last.dead = true
		return true
	}
	last.pairs = append(last.pairs, tokens.Tokens{Access: words[2], Refresh: words[3]})
	return true
}

// checkAnswered compares a restarted registry with the replies that its callers got. Of the last grant of each
// writer one more step may be on disk.
func checkAnswered(t *testing.T, dir string, writers map[string]*answered) {
	t.Helper()
	c, _, stop, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for who, w := range writers {
		for i, f := range w.families {
			if i < len(w.families)-1 {
				checkFinished(t, c, who, w.creds, f)
			}
			pair, err := c.Exchange(ctx, tokens.Exchange{Client: w.creds, Code: f.code, RedirectURI: callback})
			if err == nil && len(f.pairs) > 0 {
				t.Errorf("%s: a code was redeemed twice: %v", who, pair.Scopes)
			}
			if err != nil && !errors.Is(err, tokens.ErrInvalidGrant) {
				t.Errorf("%s: code: got %v", who, err)
			}
			for _, pair := range f.pairs { // the replay ended them
				if _, err := c.Lookup(pair.Access); err == nil {
					t.Errorf("%s: an access token outlived the replay of its code", who)
				}
			}
		}
	}
}

func checkFinished(t *testing.T, c *tokens.Client, who string, creds tokens.ClientCredentials, f *answeredFamily) {
	t.Helper()
	if len(f.pairs) != 4 {
		t.Errorf("%s: got %d pairs", who, len(f.pairs))
		return
	}
	for n, pair := range f.pairs {
		if _, err := c.Lookup(pair.Access); (err == nil) == f.dead {
			t.Errorf("%s: access token %d, revoked %v: got %v", who, n, f.dead, err)
		}
	}
	if _, err := c.Refresh(ctx, tokens.Refresh{Client: creds, Token: f.pairs[3].Refresh}); (err == nil) == f.dead {
		t.Errorf("%s: refresh token, revoked %v: got %v", who, f.dead, err)
	}
	if _, err := c.Refresh(ctx, tokens.Refresh{Client: creds, Token: f.pairs[0].Refresh}); !errors.Is(err,
		tokens.ErrInvalidGrant) {
		t.Errorf("%s: a rotated token works again: %v", who, err)
	}
}
