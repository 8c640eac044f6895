package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/statetest/fixture"
)

// auditLog returns the records that a query selects, the newest first.
func auditLog(t *testing.T, s *state.State, q state.AuditQuery) (all []state.AuditRecord) {
	t.Helper()
	for r, err := range s.AuditLog(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// changesOf returns the changes of a record as "field: before -> after".
func changesOf(r *state.AuditRecord) (all []string) {
	for _, c := range r.Changes {
		all = append(all, fmt.Sprintf("%s: %s -> %s", c.Field, c.Before, c.After))
	}
	return all
}

var operator = state.Actor{Kind: state.ActorUser, Name: "anna", Via: "page", Address: "192.0.2.7", Request: "req_1"}

func TestAChangeAndItsAuditRecordAreOneCommit(t *testing.T) {
	s := newState(t)
	ctx := state.WithActor(context.Background(), operator)
	k := newKey(t, 1)
	if err := identity.CreateKey(ctx, s, k); err != nil {
		t.Fatal(err)
	}
	change := func(k *identity.Key) error {
		k.Limits.RPM, k.Models, k.Expires = 60, []string{"gpt-*"}, start.Add(time.Hour)
		return nil
	}
	if _, err := identity.ChangeKey(ctx, s, k.ID, change); err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	err := state.Run(ctx, s, func(tx *state.Tx) error {
		if err := identity.RemoveKey(tx, k.ID); err != nil {
			return err
		}
		return refused
	})
	if !errors.Is(err, refused) {
		t.Fatal(err)
	}
	if _, err := identity.ChangeKey(ctx, s, k.ID, func(*identity.Key) error { return nil }); err != nil {
		t.Fatal(err)
	}
	all := auditLog(t, s, state.AuditQuery{})
	if len(all) != 2 || all[0].ID != 2 || all[1].ID != 1 {
		t.Fatalf("a refused command and one that changes nothing were recorded: %+v", all)
	}
	got := all[0]
	target := state.Target{Kind: "key", ID: k.ID, Name: k.Name}
	if got.Action != "key.change" || got.Actor != operator || got.Target != target || !got.At.Equal(start) {
		t.Errorf("got %+v", got)
	}
	want := []string{`expires: null -> "2026-01-02T04:04:05Z"`, `models: null -> ["gpt-*"]`, "rpm: 0 -> 60"}
	if changes := changesOf(&got); !slices.Equal(changes, want) {
		t.Errorf("got %q, want %q", changes, want)
	}
	if all[1].Action != "key.create" || !slices.Contains(changesOf(&all[1]), "enabled: null -> true") {
		t.Errorf("got %+v %q", all[1], changesOf(&all[1]))
	}
}

func TestTheAuditLogNeverHasASecret(t *testing.T) {
	s := newState(t)
	u := identity.User{Username: "bob", Email: "bob@secret.example", Password: "$argon2id$secret", Status: 1}
	must(t, s, func(tx *state.Tx) error {
		_, err := identity.AddUser(tx, u)
		return err
	})
	k := newKey(t, 1)
	must(t, s, func(tx *state.Tx) error { return identity.AddKey(tx, k) })
	fresh := newKey(t, 2).Hash
	if _, err := identity.ChangeKey(context.Background(), s, k.ID, func(k *identity.Key) error {
		k.Hash = fresh
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	all := auditLog(t, s, state.AuditQuery{})
	if got := changesOf(&all[0]); !slices.Equal(got, []string{`secret: "hidden" -> "hidden"`}) {
		t.Errorf("a changed secret is recorded as %q", got)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	hash, _ := json.Marshal(k.Hash)
	for _, secret := range []string{"secret.example", "argon2id", strings.Trim(string(hash), `"`), string(k.Hash[:])} {
		if strings.Contains(string(text), secret) {
			t.Errorf("the log has %q: %s", secret, text)
		}
	}
}

func TestANameIsShownAsTargetAndAmongTheFields(t *testing.T) {
	s := newState(t)
	k := newKey(t, 1)
	must(t, s, func(tx *state.Tx) error { return identity.AddKey(tx, k) })
	name := strings.Repeat("\U0001F511", 100)
	if _, err := identity.ChangeKey(context.Background(), s, k.ID, func(k *identity.Key) error {
		k.Name = name
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	got := auditLog(t, s, state.AuditQuery{Target: name})
	if want := fmt.Sprintf("name: %q -> %q", k.Name, name); len(got) != 1 || got[0].Target.Name != name ||
		!slices.Equal(changesOf(&got[0]), []string{want}) {
		t.Errorf("got %+v", got)
	}
}

func TestALongNameOfTheAuditLogIsCutBetweenCharacters(t *testing.T) {
	s := newState(t)
	for _, r := range []string{"x", "\u00e4", "\u20ac", "\U0001F511"} {
		target := state.Target{Kind: "provider", Name: strings.Repeat(r, 500)}
		if err := s.RecordAudit(context.Background(), state.AuditEvent{Action: "a", Target: target}); err != nil {
			t.Fatal(err)
		}
		name := auditLog(t, s, state.AuditQuery{})[0].Target.Name
		if cut := strings.TrimSuffix(name, "\u2026"); cut == name || len(cut) > 400 || strings.Trim(cut, r) != "" {
			t.Errorf("%s: %q", r, name)
		}
	}
}

func TestTheAuditLogIsSearchedByActorActionTargetAndTime(t *testing.T) {
	clock := newClock()
	s := open(t, journal.NewMemory(), clock.Now)
	for i := range 600 { // more than two chunks
		actor := operator
		if i%3 == 0 {
			actor = state.Actor{Kind: state.ActorAdminToken}
		}
		event := state.AuditEvent{Action: []string{"key.create", "user.change"}[i%2],
			Target: state.Target{Kind: "key", ID: fmt.Sprint("key_", i), Name: "Laptop"}}
		if err := s.RecordAudit(state.WithActor(context.Background(), actor), event); err != nil {
			t.Fatal(err)
		}
		clock.Add(time.Minute)
	}
	for name, c := range map[string]struct {
		q           state.AuditQuery
		n           int
		first, last uint64
	}{
		"all":              {state.AuditQuery{}, 600, 600, 1},
		"a user":           {state.AuditQuery{Actor: "ANNA"}, 400, 600, 2},
		"a kind of actor":  {state.AuditQuery{Actor: "admin_token"}, 200, 598, 1},
		"an action":        {state.AuditQuery{Action: "key.create"}, 300, 599, 1},
		"a kind of action": {state.AuditQuery{Action: "user"}, 300, 600, 2},
		"half an action":   {state.AuditQuery{Action: "us"}, 0, 0, 0},
		"an id":            {state.AuditQuery{Target: "key_599"}, 1, 600, 600},
		"part of a name":   {state.AuditQuery{Target: "lapt"}, 600, 600, 1},
		"a time": {state.AuditQuery{From: start.Add(10 * time.Minute), To: start.Add(20 * time.Minute)}, 10, 20,
			11},
		"before the first": {state.AuditQuery{To: start}, 0, 0, 0},
		"after the last":   {state.AuditQuery{From: start.Add(600 * time.Minute)}, 0, 0, 0},
		"the next page":    {state.AuditQuery{Before: 300}, 299, 299, 1},
	} {
		got := auditLog(t, s, c.q)
		if len(got) != c.n || c.n > 0 && (got[0].ID != c.first || got[c.n-1].ID != c.last) {
			t.Errorf("%s: got %d records, want %d from %d to %d", name, len(got), c.n, c.first, c.last)
		}
	}
	for range s.AuditLog(t.Context(), state.AuditQuery{}) {
		break // a reader may stop
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for _, err := range s.AuditLog(ended, state.AuditQuery{}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a reader that has left gets %v", err)
		}
	}
}

func TestOldAuditRecordsLeaveByAgeAndByNumber(t *testing.T) {
	clock, store := newClock(), journal.NewMemory()
	s := open(t, store, clock.Now)
	for range 20 {
		if err := s.RecordAudit(context.Background(), state.AuditEvent{Action: "a"}); err != nil {
			t.Fatal(err)
		}
		clock.Add(time.Hour)
	}
	sweep := func() {
		t.Helper()
		if _, err := s.Sweep(context.Background(), 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		keep    time.Duration
		records int64
		first   uint64
		later   time.Duration
	}{{0, 0, 1, 0}, {24 * time.Hour, 100, 1, 0}, {15 * time.Hour, 0, 6, 0}, {0, 10, 11, 30 * 24 * time.Hour},
		{30*24*time.Hour + time.Hour, 0, 20, 0}} {
		clock.Add(c.later)
		s.KeepAudit(c.keep, c.records)
		sweep()
		all := auditLog(t, s, state.AuditQuery{})
		if all[0].ID != 20 || all[len(all)-1].ID != c.first || len(all) != int(21-c.first) {
			t.Errorf("%v, %d: got %d records down to %d", c.keep, c.records, len(all), all[len(all)-1].ID)
		}
	}
	clock.Add(2 * time.Hour)
	sweep()
	if err := s.RecordAudit(context.Background(), state.AuditEvent{Action: "a"}); err != nil {
		t.Fatal(err)
	}
	if all := auditLog(t, s, state.AuditQuery{}); len(all) != 1 || all[0].ID != 21 {
		t.Errorf("a record after all have left: %+v", all)
	}
	s.Close()
	fixture.Sound(t, store, "after sweeping")
}

func TestManyNewAuditRecordsPushOutNoneOfTheLast30Days(t *testing.T) {
	clock := newClock()
	s := open(t, journal.NewMemory(), clock.Now)
	s.KeepAudit(0, 2)
	record := func() {
		if err := s.RecordAudit(context.Background(), state.AuditEvent{Action: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	record() // leaves
	clock.Add(time.Hour)
	record() // stays
	clock.Add(30*24*time.Hour - time.Minute)
	for range 5 {
		record()
	}
	if _, err := s.Sweep(context.Background(), 0); err != nil {
		t.Fatal(err)
	}
	if all := auditLog(t, s, state.AuditQuery{}); len(all) != 6 || all[5].ID != 2 {
		t.Errorf("%d records down to %d", len(all), all[len(all)-1].ID)
	}
}

func TestVerifyFindsAMissingAuditRecord(t *testing.T) {
	store := journal.NewMemory()
	s := open(t, store, newClock().Now)
	for range 3 {
		if err := s.RecordAudit(context.Background(), state.AuditEvent{Action: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	fixture.Sound(t, store, "before")
	gone := journal.Batch{Ops: []journal.Op{{Kind: journal.Delete, Table: journal.Audit, Key: state.SequenceKey(2)}}}
	if _, err := store.Commit(t.Context(), []journal.Batch{gone}); err != nil {
		t.Fatal(err)
	}
	v, err := schema.Verify(t.Context(), store)
	const want = "has 2 records, and not those from 1 to 3"
	if err != nil || len(v.Problems) != 1 || !strings.Contains(v.Problems[0], want) {
		t.Errorf("got %v, %q", err, v.Problems)
	}
}

func TestAuditRecordsAreBounded(t *testing.T) {
	s := newState(t)
	event := state.AuditEvent{Action: "a", Target: state.Target{Name: strings.Repeat("n", 10_000)},
		After: state.Fields{"models": []string{strings.Repeat("m", 100_000)}}}
	if err := s.RecordAudit(context.Background(), event); err != nil {
		t.Fatal(err)
	}
	r := auditLog(t, s, state.AuditQuery{})[0]
	text, err := json.Marshal(r)
	if err != nil || len(text) > 6000 || !strings.Contains(string(text), "(100004 bytes)") {
		t.Errorf("a record of %d bytes, %v", len(text), err)
	}
}

func TestALongTextOfAnAuditRecordStaysText(t *testing.T) {
	s := newState(t)
	lines := strings.Repeat("say: \"hi\"\n", 1000)
	event := state.AuditEvent{Action: "a", After: state.Fields{"lines": lines}}
	if err := s.RecordAudit(context.Background(), event); err != nil {
		t.Fatal(err)
	}
	_, after := auditLog(t, s, state.AuditQuery{})[0].Changes[0].Texts()
	if want := lines[:4096] + "… (10000 bytes)"; after != want {
		t.Errorf("got\n%s\nwant\n%s", after, want)
	}
}

func TestRequestsCostTheAuditLogNothing(t *testing.T) {
	s := newState(t)
	before := s.View().NumberFact("audit/last")
	session := identity.Session{ID: "ses_1", Hash: hash(1), User: 1, Expires: start.Add(time.Hour)}
	for range 2 { // the session is seen once an hour
		must(t, s, func(tx *state.Tx) error { return identity.PutSession(tx, session) })
		session.Seen = start.Add(time.Minute)
	}
	if n := s.View().NumberFact("audit/last") - before; n != 1 {
		t.Errorf("signing in and being seen made %d records", n)
	}
	receipt := &money.Receipt{Request: "req_1", Key: "key_1", Model: "m"}
	must(t, s, func(tx *state.Tx) error {
		_, posted, err := money.Post(tx, "anna", []money.Posting{{Kind: money.Credit, Amount: 10},
			{Kind: money.Settle, Amount: 5, Receipt: receipt}})
		return errors.Join(err, posted[1].Err)
	})
	if n := s.View().NumberFact("audit/last") - before; n != 2 {
		t.Errorf("a credit and a settlement made %d records more", n-1)
	}
}
