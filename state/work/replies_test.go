package work_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
	"stagedoor/state/statetest/fixture"
	"stagedoor/state/work"
)

// replyOf returns the reply to a request with a key.
func replyOf(owner state.Owner, key string) work.Reply {
	return work.Reply{Owner: owner, Key: state.HashSecret(key), Asked: hash(1), Request: "req_" + key, Status: 200,
		Header: http.Header{"Content-Type": {"text/event-stream"}}}
}

func putReply(t *testing.T, s *state.State, r work.Reply, body []byte) {
	t.Helper()
	if err := work.PutReply(ctx, s, r, body); err != nil {
		t.Fatal(err)
	}
}

// A reply is found only by its owner and key, survives a restart, and is removed with its body.
func TestRepliesAreKeptForADay(t *testing.T) {
	clock, store := newClock(), journal.NewMemory()
	s, err := schema.Open(statetest.DecideTwice(store), clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	body := []byte("data: {}\n\n\xff") // any bytes
	putReply(t, s, replyOf(me, "k"), []byte("older"))
	putReply(t, s, replyOf(me, "k"), body)
	s.Close()
	if s, err = schema.Open(statetest.DecideTwice(store), clock.Now); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sound(t, store, "after a restart")
	r, found := work.FindReply(s.View(), me, "k")
	got, err := work.ReadReplyBody(ctx, s, &r)
	if !found || err != nil || !bytes.Equal(got, body) || r.Request != "req_k" || r.Header.Get("Content-Type") == "" {
		t.Errorf("got %+v %q, %v", r, got, err)
	}
	if _, found := work.FindReply(s.View(), other, "k"); found {
		t.Error("another owner finds it")
	}
	clock.Add(work.ReplyTTL)
	if _, found := work.FindReply(s.View(), me, "k"); found {
		t.Error("it is found after its time")
	}
	if n, err := s.Sweep(ctx, 0); n != 1 || err != nil || work.StoredReplies(s).Used() != 0 {
		t.Errorf("swept %d, %v", n, err)
	}
	if _, err := work.ReadReplyBody(ctx, s, &r); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("its body: %v", err)
	}
}

// Beyond its share an owner loses its own oldest replies and those of no other owner.
func TestRepliesAreBoundedInAllAndPerOwner(t *testing.T) {
	clock := newClock()
	s, err := schema.Open(statetest.DecideTwice(journal.NewMemory()), clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const unit = 16 << 10
	work.MaxReplyBytes(s, 8*unit)
	putReply(t, s, replyOf(other, "k"), nil)
	for i := range 9 {
		clock.Add(time.Second)
		putReply(t, s, replyOf(me, fmt.Sprint(i)), nil)
	}
	kept := ""
	for i := range 9 {
		if _, found := work.FindReply(s.View(), me, fmt.Sprint(i)); found {
			kept += fmt.Sprint(i)
		}
	}
	if _, found := work.FindReply(s.View(), other, "k"); !found || kept != "678" {
		t.Errorf("kept %q; the other owner's: %v", kept, found)
	}
	putReply(t, s, replyOf(me, "large"), make([]byte, 8*unit))
	if r, found := work.FindReply(s.View(), me, "large"); !found || !r.Lost || r.Size != 0 {
		t.Errorf("a reply beyond any share: %+v", r)
	}
}

// Verify also finds bodies without their replies.
func TestVerifyFindsRepliesWithoutTheirBodies(t *testing.T) {
	store := journal.NewMemory()
	s, err := schema.Open(store, newClock().Now)
	if err != nil {
		t.Fatal(err)
	}
	putReply(t, s, replyOf(me, "k"), []byte("body"))
	s.Close()
	fixture.WantProblem(t, store, journal.Op{Table: journal.ReplyBody, Key: []byte("x")}, "a reply that does not exist")
	store = journal.NewMemory()
	if s, err = schema.Open(store, newClock().Now); err != nil {
		t.Fatal(err)
	}
	putReply(t, s, replyOf(me, "k"), []byte("body"))
	s.Close()
	body := fixture.Edit(t, store, journal.ReplyBody, "", "").Key
	gone := journal.Op{Kind: journal.Delete, Table: journal.ReplyBody, Key: body}
	fixture.WantProblem(t, store, gone, "has 0 bytes of 4")
}
