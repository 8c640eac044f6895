package tokens

import (
	"crypto/rand"
	"errors"
	"slices"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/schema"
)

// G1: how long an authentication takes tells neither whether there is such a
// client nor how much of a secret is right. The bound is wide and the best of a
// few rounds counts: what it must notice is work that only some guesses cost.
func TestAuthenticationTakesTheSameTime(t *testing.T) {
	s, err := schema.Open(journal.NewMemory(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	secret, err := kindSecret.mint(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	app, err := state.Do(t.Context(), s, func(tx *state.Tx) (identity.App, error) {
		return identity.AddApp(tx,
			identity.App{
				ClientID:    "ci_known",
				Secret:      state.HashSecret(secret),
				RedirectURI: "https://app.example.com/cb",
			},
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	near := secret[:len(secret)-1] + "~"
	guesses := []struct {
		name   string
		client ClientCredentials
		good   bool
	}{
		{"right", ClientCredentials{ID: app.ClientID, Secret: secret}, true},
		{"nearly right", ClientCredentials{ID: app.ClientID, Secret: near}, false},
		{"wrong", ClientCredentials{ID: app.ClientID, Secret: "as_" + near[:len(near)-3]}, false},
		{"unknown client", ClientCredentials{ID: "ci_knowm", Secret: secret}, false},
	}
	const rounds, calls, most = 10, 5000, 1.5
	var medians []time.Duration
	for range rounds {
		times := make([][]time.Duration, len(guesses))
		for range calls {
			for i, g := range guesses { // in turn, so that all see the same disturbances
				begun := time.Now()
				_, err := authenticate(s.View(), g.client.hashed())
				times[i] = append(times[i], time.Since(begun))
				if (err == nil) != g.good || (err != nil && !errors.Is(err, ErrInvalidClient)) {
					t.Fatalf("%s: got %v", g.name, err)
				}
			}
		}
		medians = medians[:0]
		for _, all := range times {
			slices.Sort(all)
			medians = append(medians, all[len(all)/2])
		}
		if float64(slices.Max(medians)) < most*float64(slices.Min(medians)) {
			return
		}
	}
	for i, g := range guesses {
		t.Errorf("%s: median %v", g.name, medians[i])
	}
}
