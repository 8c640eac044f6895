package identity_test

import (
	"errors"
	"slices"
	"strconv"
	"testing"

	"stagedoor/state"
	"stagedoor/state/identity"
)

// The indexes of memdb would add about 900 bytes to the 750 that a key takes.
func TestAKeyTakesLittleMemory(t *testing.T) {
	const n, most = 4000, 1100 // some of it is of the state itself
	if got := bytesOfKeys(t, n, func(i int) string { return "user" }) / n; got > most {
		t.Errorf("a key takes %d bytes of memory, of at most %d", got, most)
	}
}

func TestTwoKeysOfOneCommandHaveDifferentHashes(t *testing.T) {
	s := newState(t)
	first, second := newKey(t, 1), newKey(t, 2)
	second.Hash = first.Hash
	err := try(s, func(tx *state.Tx) error {
		if err := identity.AddKey(tx, first); err != nil {
			return err
		}
		return identity.AddKey(tx, second)
	})
	if !errors.Is(err, state.ErrExists) {
		t.Errorf("two keys with one hash: %v", err)
	}
	if _, found := identity.AccessOf(s).Key(first.Hash); found {
		t.Error("a refused command left a key")
	}
	must(t, s, func(tx *state.Tx) error {
		if err := identity.AddKey(tx, first); err != nil {
			return err
		}
		if err := identity.RemoveKey(tx, first.ID); err != nil {
			return err
		}
		return identity.AddKey(tx, second) // the hash is free again
	})
	if k, _ := identity.AccessOf(s).Key(second.Hash); k.ID != second.ID {
		t.Errorf("the key with the hash is %q", k.ID)
	}
}

func TestACommandSeesTheKeysOfAUserAsItLeavesThem(t *testing.T) {
	s := newState(t)
	all := []identity.Key{newKey(t, 1), newKey(t, 2), newKey(t, 3), newKey(t, 4)}
	for i := range all {
		all[i].User = "ada"
	}
	all[3].User = "bob"
	ids := func(keys []identity.Key) (ids []string) {
		for _, k := range keys {
			ids = append(ids, k.ID)
		}
		return ids
	}
	must(t, s, func(tx *state.Tx) error { return errors.Join(identity.AddKey(tx, all[0]), identity.AddKey(tx, all[3])) })
	must(t, s, func(tx *state.Tx) error {
		err := errors.Join(identity.AddKey(tx, all[2]), identity.AddKey(tx, all[1]), identity.RemoveKey(tx, all[0].ID))
		if got := ids(identity.KeysOf(tx, "ada")); !slices.Equal(got, ids(all[1:3])) {
			t.Errorf("the command sees %v", got)
		}
		if got := identity.KeysOf(tx, ""); len(got) != 0 {
			t.Errorf("keys of no user: %v", got)
		}
		return err
	})
	if got := ids(identity.AccessOf(s).KeysOf("ada")); !slices.Equal(got, ids(all[1:3])) {
		t.Errorf("after the commit: %v", got)
	}
	must(t, s, func(tx *state.Tx) error {
		k, err := identity.KeyForChange(tx, all[1].ID)
		k.User = "bob"
		return errors.Join(err, identity.PutKey(tx, k))
	})
	access := identity.AccessOf(s)
	if got := ids(access.KeysOf("bob")); !slices.Equal(got, []string{all[1].ID, all[3].ID}) {
		t.Errorf("after the change of a key's user: %v", got)
	}
	if got := ids(access.KeysOf("ada")); !slices.Equal(got, ids(all[2:3])) {
		t.Errorf("left to the other user: %v", got)
	}
}

// TestAKeyIsFoundWhileItChanges looks for a key all the time while its record changes. A request with the key must
// never be refused for that.
func TestAKeyIsFoundWhileItChanges(t *testing.T) {
	s := newState(t)
	k := newKey(t, 1)
	if err := identity.CreateKey(t.Context(), s, k); err != nil {
		t.Fatal(err)
	}
	changed := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < 3000 && err == nil; i++ {
			_, err = identity.ChangeKey(t.Context(), s, k.ID, func(k *identity.Key) error {
				k.Name = strconv.Itoa(i)
				return nil
			})
		}
		changed <- err
	}()
	access := identity.AccessOf(s)
	for {
		select {
		case err := <-changed:
			if err != nil {
				t.Error(err)
			}
			return
		default:
			if _, found := access.Key(k.Hash); !found {
				t.Fatal("the key was not found")
			}
		}
	}
}
