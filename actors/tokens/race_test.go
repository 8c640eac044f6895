package tokens_test

import (
	"errors"
	"flag"
	"sync"
	"testing"
	"time"

	"stagedoor/actors/tokens"
)

const racers = 32

// race calls fn racers times at once and returns what succeeded.
func race(t *testing.T, fn func() (tokens.Tokens, error)) []tokens.Tokens {
	t.Helper()
	var wg sync.WaitGroup
	begin := make(chan struct{})
	pairs, errs := make([]tokens.Tokens, racers), make([]error, racers)
	for i := range racers {
		wg.Go(func() {
			<-begin
			pairs[i], errs[i] = fn()
		})
	}
	close(begin)
	wg.Wait()
	var won []tokens.Tokens
	for i, err := range errs {
		switch {
		case err == nil:
			won = append(won, pairs[i])
		case !errors.Is(err, tokens.ErrInvalidGrant):
			t.Errorf("got %v, want ErrInvalidGrant", err)
		}
	}
	return won
}

// races is the number of rounds of each race. The attacks B2 and C2 of oauth.md ask for
// 10,000, which take minutes: `make soak` runs that many.
var races = flag.Int("races", 200, "rounds of each race between callers of the token registry")

func rounds() int {
	if testing.Short() {
		return 20
	}
	return *races
}

// B2.
func TestOneOfManyExchangesWinsAndReplaysEndItsTokens(t *testing.T) {
	b := newBench(t, tokens.Config{})
	for range rounds() {
		code := b.code(t)
		won := race(t, func() (tokens.Tokens, error) { return b.exchange(code) })
		if len(won) != 1 {
			t.Fatalf("%d winners", len(won))
		}
		b.dead(t, won[0])
	}
}

// C2, without a grace.
func TestOneOfManyRefreshesWinsAndReuseEndsItsTokens(t *testing.T) {
	b := newBench(t, tokens.Config{})
	for range rounds() {
		pair := b.tokens(t)
		won := race(t, func() (tokens.Tokens, error) { return b.refresh(pair.Refresh) })
		if len(won) != 1 {
			t.Fatalf("%d winners", len(won))
		}
		b.dead(t, won[0])
		b.dead(t, pair)
	}
}

// C2, with one.
func TestAllOfManyRefreshesGetOneSuccessorInTheGrace(t *testing.T) {
	b := newBench(t, tokens.Config{RefreshGrace: time.Second})
	for range rounds() {
		pair := b.tokens(t)
		won := race(t, func() (tokens.Tokens, error) { return b.refresh(pair.Refresh) })
		if len(won) != racers {
			t.Fatalf("%d winners, want all", len(won))
		}
		for _, w := range won {
			if w.Access != won[0].Access || w.Refresh != won[0].Refresh {
				t.Fatalf("two successors: %+v and %+v", w, won[0])
			}
		}
		b.alive(t, won[0])
	}
}

// I1, in the registry.
func TestNothingWorksAfterTheRevocationWasAnswered(t *testing.T) {
	b := newBench(t, tokens.Config{})
	for range rounds() {
		pair := b.tokens(t)
		if err := b.Revoke(ctx, b.creds, pair.Refresh); err != nil {
			t.Fatal(err)
		}
		b.dead(t, pair)
	}
}

// TestRefreshAgainstRevocation: whichever comes first, in the end nothing is
// left.
func TestRefreshAgainstRevocation(t *testing.T) {
	b := newBench(t, tokens.Config{})
	for range rounds() {
		pair := b.tokens(t)
		var wg sync.WaitGroup
		var next tokens.Tokens
		wg.Go(func() { next, _ = b.refresh(pair.Refresh) })
		wg.Go(func() {
			if err := b.RevokeUserApp(ctx, b.user.ID, b.app.ID); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		b.dead(t, pair)
		b.dead(t, next)
	}
}
