package auth_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/actors/flow"
	"stagedoor/http/auth"
	"stagedoor/state/identity"
)

// TestARequestEndsWhenItsKeyBecomesUnusable: because the configuration has other keys, or because the key expires. One
// whose key stays goes on, and one that has ended by itself is not checked any more.
func TestARequestEndsWhenItsKeyBecomesUnusable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := auth.New(nil, time.Now)
		removed, stays, expires := key("removed", "1"), key("stays", "2"), key("expires", "3")
		expires.Expires = time.Now().Add(time.Hour)
		a.SetFixed([]identity.Key{removed, stays, expires})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go a.EndRevoked(ctx, flow.New(time.Now))

		watch := func(k identity.Key) (context.Context, func()) {
			return a.Watch(httptest.NewRequest("GET", "/", nil), &k)
		}
		first, leaveFirst := watch(removed)
		second, leaveSecond := watch(stays)
		third, leaveThird := watch(expires)
		left, leave := watch(removed)
		leave()
		if err := context.Cause(left); !errors.Is(err, context.Canceled) {
			t.Errorf("a request that has ended by itself: %v", err)
		}
		generation := a.KeyGeneration()
		a.SetFixed([]identity.Key{stays, expires})
		if a.KeyGeneration() == generation {
			t.Error("other keys of the configuration are no new generation")
		}
		time.Sleep(time.Second)
		const gone = "401 authentication_error: the API key does not exist any more"
		if err := context.Cause(first); err == nil || err.Error() != gone {
			t.Errorf("the removed key: %v", err)
		}
		if err := errors.Join(second.Err(), third.Err()); err != nil {
			t.Errorf("the keys that stay: %v", err)
		}
		generation = a.KeyGeneration()
		time.Sleep(time.Hour)
		if third.Err() == nil || a.KeyGeneration() == generation {
			t.Error("a request goes on with a key that has expired")
		}
		if err := second.Err(); err != nil {
			t.Errorf("the key that stays: %v", err)
		}
		late, leaveLate := watch(expires)
		if late.Err() == nil {
			t.Error("a request begins with a key that has expired")
		}
		for _, leave := range []func(){leaveFirst, leaveSecond, leaveThird, leaveLate} {
			leave()
		}
		stop()
		synctest.Wait()
	})
}

// TestAKeyIsFoundByItsID among those of the configuration and of the state, unless its user is disabled.
func TestAKeyIsFoundByItsID(t *testing.T) {
	blocked := key("blocked", "b")
	blocked.User = "disabled"
	a := auth.New(keys{blocked.Hash: blocked, key("stored", "s").Hash: key("stored", "s")}, time.Now)
	a.SetFixed([]identity.Key{key("fixed", "f")})
	for id, want := range map[string]string{
		"fixed": "", "stored": "", "none": "401 authentication_error: the API key does not exist any more",
		"blocked": "401 authentication_error: the API key cannot be used: its user is disabled",
	} {
		got, err := a.ByID(id)
		if want == "" && (err != nil || got.ID != id) || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %+v, %v, want %q", id, got, err, want)
		}
	}
}
