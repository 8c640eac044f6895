package state_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/schema"
)

// furnished is a store with something in most tables, which was folded too.
func furnished(t *testing.T) *journal.Memory {
	t.Helper()
	clock, store := newClock(), journal.NewMemory()
	s := open(t, store, clock.Now)
	must(t, s, func(tx *state.Tx) error {
		u, err := tx.AddUser(state.User{Username: "anna", Status: state.UserActive})
		if err != nil {
			return err
		}
		_, err = tx.AddApp(state.App{ClientID: "client", Secret: hash(1), Owner: u.ID, Name: "App", RedirectURI: "https://a.example/"})
		return err
	})
	must(t, s, access(3, time.Now().AddDate(10, 0, 0)))
	if err := s.AddKey(ctx, newKey(t, 1)); err != nil {
		t.Fatal(err)
	}
	r := state.StoredResponse{Body: []byte(`{"id":"resp_1"}`)}
	r.ID, r.Owner, r.Status = "resp_1", me, "in_progress"
	if err := s.PutResponse(ctx, r); err != nil {
		t.Fatal(err)
	}
	if _, err := s.UpdateResponse(ctx, "resp_1", me, state.ResponseUpdate{Events: []byte("data"), LastEvent: 3}); err != nil {
		t.Fatal(err)
	}
	post(t, s, "1", state.Posting{Kind: state.Credit, Amount: 100}, state.Posting{Kind: state.Begin, Amount: 10, Receipt: about("r1")})
	post(t, s, "1", state.Posting{Kind: state.Settle, Held: 5, Amount: 3, Receipt: about("r2")})
	clock.Add(time.Hour)
	if n, err := s.Fold(ctx, clock.Now(), 2); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	s.Close()
	return store
}

func TestVerifyFindsNothingWrongWithAGoodStore(t *testing.T) {
	v, err := schema.Verify(ctx, furnished(t))
	if err != nil || !v.Sound() || v.Books.Folded != 2 || v.Books.Entries != 1 || v.Books.Credits != 100 || v.Books.Held != 10 {
		t.Errorf("got %+v, %v", v, err)
	}
}

// TestVerifyNamesWhatIsWrong changes one record of a good store at a time.
func TestVerifyNamesWhatIsWrong(t *testing.T) {
	replace := func(table journal.Table, old, to string) func(*testing.T, journal.Store) journal.Op {
		return func(t *testing.T, s journal.Store) (op journal.Op) {
			err := s.Range(ctx, table, nil, nil, 0, func(r journal.Record) error {
				if op.Key == nil && strings.Contains(string(r.Value), old) {
					op = journal.Op{Table: table, Key: bytes.Clone(r.Key), Value: bytes.Replace(r.Value, []byte(old), []byte(to), 1)}
				}
				return nil
			})
			if err != nil || op.Key == nil {
				t.Fatalf("no %q in %s: %v", old, table, err)
			}
			return op
		}
	}
	remove := func(table journal.Table) func(*testing.T, journal.Store) journal.Op {
		return func(t *testing.T, s journal.Store) journal.Op {
			op := replace(table, "", "")(t, s)
			return journal.Op{Kind: journal.Delete, Table: table, Key: op.Key}
		}
	}
	put := func(table journal.Table, key, value string) func(*testing.T, journal.Store) journal.Op {
		return func(*testing.T, journal.Store) journal.Op {
			return journal.Op{Table: table, Key: []byte(key), Value: []byte(value)}
		}
	}
	edit := func(fn func([]state.Entry)) func(*testing.T, journal.Store) journal.Op {
		return func(t *testing.T, s journal.Store) journal.Op {
			op := replace(journal.Ledger, "", "")(t, s)
			op.Value = state.EditPage(journal.Record{Key: op.Key, Value: op.Value}, fn)
			return op
		}
	}
	for name, c := range map[string]struct {
		change func(*testing.T, journal.Store) journal.Op
		want   string
	}{
		"a balance":              {replace(journal.Balance, `"spent":3`, `"spent":2`), "its entries add up to"},
		"a balance is gone":      {remove(journal.Balance), "account 1 is missing"},
		"a checkpoint":           {replace(journal.Folded, `"credits":100`, `"credits":99`), "add up"},
		"a ledger entry":         {edit(func(e []state.Entry) { e[0].Amount++ }), "its entries add up to"},
		"a ledger entry is gone": {remove(journal.Ledger), "has no ledger entry"},
		"a hold is gone":         {remove(journal.Hold), "hold 2 is missing"},
		"a receipt is gone":      {remove(journal.ByHash), "no receipt is found that says so"},
		"a receipt's request":    {edit(func(e []state.Entry) { e[0].Request = "r3" }), "no receipt is found that says so"},
		"a receipt's value":      {replace(journal.ByHash, "", "12345678"), "a form that is not known"},
		"a receipt's key":        {put(journal.Receipt, "x", ""), "a form that is not known"},
		"a receipt too many":     {put(journal.Receipt, strings.Repeat("x", 24), ""), "has no ledger entry"},
		"a user is gone":         {remove(journal.User), "user 1, who is not there"},
		"an app is gone":         {remove(journal.App), "app 1, which is not there"},
		"a grant is gone":        {remove(journal.Grant), "grant grt_1, which is not there"},
		"a body is gone":         {remove(journal.Body), "of response resp_1 has 0 bytes"},
		"a header is gone":       {remove(journal.Response), "a response that is not there"},
		"a body too many":        {put(journal.Body, "resp_2/body", "{}"), "a response that is not there"},
		"events too many":        {put(journal.Event, "resp_2/12345678", ""), "a response that is not there"},
		"a user's form":          {replace(journal.User, `"status":1`, `"status":"x"`), "is not what it should be"},
		"a user's id":            {replace(journal.User, `"id":1`, `"id":2`), "another record's id"},
		"an entry's form":        {put(journal.Ledger, "12345678", "[]"), "a form that is not known"},
		"an entry follows":       {edit(func(e []state.Entry) { e[0].Previous = 1 }), "follows 1, not 2"},
	} {
		t.Run(name, func(t *testing.T) {
			store := furnished(t)
			if _, err := store.Commit(ctx, []journal.Batch{{Ops: []journal.Op{c.change(t, store)}}}); err != nil {
				t.Fatal(err)
			}
			v, err := schema.Verify(ctx, store)
			if err != nil || v.Sound() || !strings.Contains(strings.Join(v.Problems, "\n"), c.want) {
				t.Errorf("got %q, %v, want one with %q", v.Problems, err, c.want)
			}
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
	if _, ok := s.Key(newKey(t, 1).Hash); !ok {
		t.Error("the key does not work")
	}
	if r, err := s.Response(ctx, "resp_1", me); err != nil || string(r.Body) != `{"id":"resp_1"}` {
		t.Errorf("%s, %v", r.Body, err)
	}
}
