package state_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/statetest/fixture"
	"stagedoor/state/work"
)

// furnished returns a store with records in most tables.
func furnished(t *testing.T) *journal.Memory {
	t.Helper()
	store := journal.NewMemory()
	s := open(t, store, newClock().Now)
	must(t, s, func(tx *state.Tx) error {
		u, err := identity.AddUser(tx, identity.User{Username: "anna", Status: identity.UserActive})
		if err != nil {
			return err
		}
		_, err = identity.AddApp(
			tx,
			identity.App{
				ClientID:    "client",
				Secret:      hash(1),
				Owner:       u.ID,
				Name:        "App",
				RedirectURI: "https://a.example/",
			},
		)
		return err
	})
	must(t, s, access(3, time.Now().AddDate(10, 0, 0)))
	if err := identity.CreateKey(ctx, s, newKey(t, 1)); err != nil {
		t.Fatal(err)
	}
	r := work.StoredResponse{Body: []byte(`{"id":"resp_1"}`)}
	r.ID, r.Owner, r.Status = "resp_1", me, "in_progress"
	if err := work.PutResponse(ctx, s, r); err != nil {
		t.Fatal(err)
	}
	if _, err := work.UpdateResponse(ctx, s, "resp_1", me,
		work.ResponseUpdate{Events: []byte("data"), LastEvent: 3}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := money.CommitPostings(ctx, s, "1", []money.Posting{{Kind: money.Credit, Amount: 100}}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	return store
}

func TestVerifyFindsNothingWrongWithAGoodStore(t *testing.T) {
	v, err := schema.Verify(ctx, furnished(t))
	if err != nil || !v.Sound() || v.Ledger.Credits != 100 {
		t.Errorf("got %+v, %v", v, err)
	}
}

// TestVerifyNamesWhatIsWrong changes one record of a good store at a time.
func TestVerifyNamesWhatIsWrong(t *testing.T) {
	type damage func(*testing.T, journal.Store) journal.Op
	replace := func(table journal.Table, old, new string) damage {
		return func(t *testing.T, s journal.Store) journal.Op { return fixture.Edit(t, s, table, old, new) }
	}
	remove := func(table journal.Table) damage {
		return func(t *testing.T, s journal.Store) journal.Op {
			return journal.Op{Kind: journal.Delete, Table: table, Key: fixture.Edit(t, s, table, "", "").Key}
		}
	}
	put := func(table journal.Table, key, value string) damage {
		return func(*testing.T, journal.Store) journal.Op {
			return journal.Op{Table: table, Key: []byte(key), Value: []byte(value)}
		}
	}
	for name, c := range map[string]struct {
		damage damage
		want   string
	}{
		"a user is gone":   {remove(journal.User), "user 1, who does not exist"},
		"an app is gone":   {remove(journal.App), "app 1, which does not exist"},
		"a grant is gone":  {remove(journal.Grant), "grant grt_1, which does not exist"},
		"a body is gone":   {remove(journal.Body), "of response resp_1 has 0 bytes"},
		"a header is gone": {remove(journal.Response), "a response that does not exist"},
		"a body too many":  {put(journal.Body, "resp_2/body", "{}"), "a response that does not exist"},
		"events too many":  {put(journal.Event, "resp_2/12345678", ""), "a response that does not exist"},
		"a user's form":    {replace(journal.User, `"status":1`, `"status":"x"`), "is not what it should be"},
		"a user's id":      {replace(journal.User, `"id":1`, `"id":2`), "another record's id"},
	} {
		t.Run(name, func(t *testing.T) {
			store := furnished(t)
			fixture.WantProblem(t, store, c.damage(t, store), c.want)
		})
	}
}

func TestVerifyBoundsWhatItNames(t *testing.T) {
	store := journal.NewMemory()
	for n := range state.MaxProblems + 20 {
		op := journal.Op{Table: journal.Ledger, Key: fmt.Appendf(nil, "%08d", n), Value: []byte("x")}
		if _, err := store.Commit(ctx, []journal.Batch{{Ops: []journal.Op{op}}}); err != nil {
			t.Fatal(err)
		}
	}
	if v, err := schema.Verify(ctx, store); err != nil || len(v.Problems) != state.MaxProblems || v.More != 20 {
		t.Errorf("%d named, %d more, %v", len(v.Problems), v.More, err)
	}
}

// TestExportedStateIsTheSameState: everything comes back, down to the bytes.
func TestExportedStateIsTheSameState(t *testing.T) {
	var text, again bytes.Buffer
	if _, err := journal.Export(ctx, furnished(t), &text); err != nil {
		t.Fatal(err)
	}
	copied := journal.NewMemory()
	if _, err := journal.Fill(ctx, copied, bytes.NewReader(text.Bytes())); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Export(ctx, copied, &again); err != nil || !bytes.Equal(again.Bytes(), text.Bytes()) {
		t.Errorf("%v:\n%s\nthen\n%s", err, &text, &again)
	}
	v, err := schema.Verify(ctx, copied)
	if err != nil || !v.Sound() {
		t.Errorf("%+v, %v", v, err)
	}
	s := open(t, copied, newClock().Now)
	if _, ok := identity.AccessOf(s).Key(newKey(t, 1).Hash); !ok {
		t.Error("the key does not work")
	}
	if r, err := work.ReadResponse(ctx, s, "resp_1", me); err != nil || string(r.Body) != `{"id":"resp_1"}` {
		t.Errorf("%s, %v", r.Body, err)
	}
}
