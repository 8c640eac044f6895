package work_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/schema"
	"stagedoor/state/share"
	"stagedoor/state/statetest"
	"stagedoor/state/statetest/fixture"
	"stagedoor/state/work"
)

// itemsOf returns items with these ids.
func itemsOf(ids ...string) (items []json.RawMessage) {
	for _, id := range ids {
		items = append(items, fmt.Appendf(nil, `{"type":"message","id":%q}`, id))
	}
	return items
}

// conversation stores a conversation of me with items of these ids.
func conversation(t *testing.T, s *state.State, ids ...string) work.Conversation {
	t.Helper()
	c, err := work.PutConversation(ctx, s, work.Conversation{ID: "conv_1", Owner: me}, []byte(`{}`), itemsOf(ids...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// idsIn returns the ids of the items of a conversation, in order.
func idsIn(t rapid.TB, s *state.State, id string) (ids []string) {
	c, err := work.FindConversation(s.View(), id, me)
	if err != nil {
		t.Fatal(err)
	}
	items, err := work.ReadAllItems(ctx, s, id, c.Next)
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range items {
		ids = append(ids, gjson.GetBytes(it, "id").Str)
	}
	return ids
}

// Conversations behave like a model of lists and maps, through generated commands that run twice,
// and after restarts. The quota counts what the model has.
func TestConversationsAreTheirModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		clock, store := newClock(), journal.NewMemory()
		s, err := schema.Open(statetest.DecideTwice(store), clock.Now)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { s.Close() }()
		type kept struct {
			metadata string
			ids      []string
		}
		model := make(map[string]*kept)
		name := rapid.SampledFrom([]string{"conv_a", "conv_b", "conv_ab"})
		newIDs := rapid.SliceOfN(rapid.SampledFrom([]string{"m1", "m2", "m3", "m4", "m5", "m6"}), 0, 3)
		step := rapid.SampledFrom([]string{"put", "put", "add", "add", "drop", "describe", "delete", "restart"})
		metadata := rapid.SampledFrom([]string{`{}`, `{"a":"b"}`})
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			id := name.Draw(rt, "conversation")
			want := model[id]
			switch step.Draw(rt, "step") {
			case "put":
				ids, m := newIDs.Draw(rt, "ids"), metadata.Draw(rt, "metadata")
				twice := len(slices.Compact(slices.Sorted(slices.Values(ids)))) < len(ids)
				_, err := work.PutConversation(ctx, s, work.Conversation{ID: id, Owner: me}, []byte(m), itemsOf(ids...))
				if ok := want == nil && !twice; (err == nil) != ok {
					rt.Fatalf("put %v: %v", ids, err)
				} else if ok {
					model[id] = &kept{m, ids}
				}
			case "add":
				ids := newIDs.Draw(rt, "ids")
				all := slices.Clone(ids)
				if want != nil {
					all = append(all, want.ids...)
				}
				twice := len(slices.Compact(slices.Sorted(slices.Values(all)))) < len(all)
				_, err := work.AddItems(ctx, s, id, me, itemsOf(ids...))
				if ok := want != nil && !twice; (err == nil) != ok {
					rt.Fatalf("add %v to %v: %v", ids, want, err)
				} else if ok {
					want.ids = append(want.ids, ids...)
				}
			case "drop":
				item := rapid.SampledFrom([]string{"m1", "m2", "m3"}).Draw(rt, "item")
				_, err := work.DeleteItem(ctx, s, id, me, item)
				at := -1
				if want != nil {
					at = slices.Index(want.ids, item)
				}
				if (err == nil) != (at >= 0) {
					rt.Fatalf("drop %s of %v: %v", item, want, err)
				}
				if at >= 0 {
					want.ids = slices.Delete(slices.Clone(want.ids), at, at+1)
				}
			case "describe":
				m := metadata.Draw(rt, "metadata")
				if _, err := work.SetMetadata(ctx, s, id, me, []byte(m)); (err == nil) != (want != nil) {
					rt.Fatalf("describe: %v", err)
				} else if want != nil {
					want.metadata = m
				}
			case "delete":
				if err := work.DeleteConversation(ctx, s, id, me); (err == nil) != (want != nil) {
					rt.Fatalf("delete: %v", err)
				}
				delete(model, id)
			case "restart":
				s.Close()
				if s, err = schema.Open(statetest.DecideTwice(store), clock.Now); err != nil {
					rt.Fatal(err)
				}
			}
			total := work.Kept{Conversations: len(model)}
			for id, want := range model {
				got := idsIn(rt, s, id)
				if !slices.Equal(got, want.ids) {
					rt.Fatalf("%s has the items %v, want %v", id, got, want.ids)
				}
				if m, err := work.ReadMetadata(ctx, s, id, me); err != nil || string(m) != want.metadata {
					rt.Fatalf("metadata %s, %v, want %s", m, err, want.metadata)
				}
				total.Bytes += int64(len(want.metadata))
				for _, it := range itemsOf(want.ids...) {
					total.Bytes += int64(len(it))
				}
			}
			if got := work.KeptResponses(s, me); got != total {
				rt.Fatalf("%+v is kept, want %+v", got, total)
			}
		}
		if v, err := schema.Verify(ctx, store); err != nil || !v.Sound() {
			rt.Fatalf("%v, problems %q", err, v.Problems)
		}
	})
}

func TestAConversationOfAnotherOwnerDoesNotExist(t *testing.T) {
	s := newState(t)
	conversation(t, s, "m1")
	calls := map[string]func() error{
		"find":     func() error { _, err := work.FindConversation(s.View(), "conv_1", other); return err },
		"metadata": func() error { _, err := work.ReadMetadata(ctx, s, "conv_1", other); return err },
		"set":      func() error { _, err := work.SetMetadata(ctx, s, "conv_1", other, []byte(`{}`)); return err },
		"add":      func() error { _, err := work.AddItems(ctx, s, "conv_1", other, itemsOf("m2")); return err },
		"drop":     func() error { _, err := work.DeleteItem(ctx, s, "conv_1", other, "m1"); return err },
		"delete":   func() error { return work.DeleteConversation(ctx, s, "conv_1", other) },
		"turn":     func() error { _, err := work.BeginTurn(t.Context(), s, "conv_1", other); return err },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := work.LatestConversations(s.View(), other, "", work.Place{}, 10); len(got) != 0 {
		t.Errorf("listed: %v", got)
	}
	if got := work.LatestConversations(s.View(), me, "", work.Place{}, 10); len(got) != 1 {
		t.Errorf("its owner: %v", got)
	}
}

// TestConversationsAreListedInPages covers conversations that were created at one moment, and one that is deleted when
// the page after it is read.
func TestConversationsAreListedInPages(t *testing.T) {
	s := open(t, journal.NewMemory(), newClock().Now)
	put := func(id string, owner state.Owner, created time.Time) {
		t.Helper()
		c := work.Conversation{ID: id, Owner: owner, Created: created}
		if _, err := work.PutConversation(t.Context(), s, c, []byte(`{}`), nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 7 {
		put("conv_"+string(rune('a'+i)), me, newClock().Now().Add(time.Duration(i/3)*time.Second))
	}
	put("conv_z", other, newClock().Now())
	var listed []string
	for after := (work.Place{}); ; {
		page := work.LatestConversations(s.View(), me, "", after, 2)
		if len(page) == 0 {
			break
		}
		for _, c := range page {
			listed = append(listed, c.ID)
		}
		last := page[len(page)-1]
		if last.ID == "conv_d" {
			if err := work.DeleteConversation(t.Context(), s, last.ID, me); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if after, err = work.ParsePlace(last.Place().String()); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := strings.Join(listed, " "), "conv_g conv_f conv_e conv_d conv_c conv_b conv_a"; got != want {
		t.Errorf("the pages list %s, want %s", got, want)
	}
	for _, text := range []string{"conv_a", "1", "1.", "x.conv_a", "1.\x00"} {
		if _, err := work.ParsePlace(text); !errors.Is(err, state.ErrInvalid) {
			t.Errorf("the place %q: %v", text, err)
		}
	}
}

// TestConversationsOfAPageAreListedAlone covers other pages, other owners and metadata that changes.
func TestConversationsOfAPageAreListedAlone(t *testing.T) {
	s := open(t, journal.NewMemory(), newClock().Now)
	long := strings.Repeat("x", 17)
	for id, page := range map[string]string{"a": "", "b": "chat", "c": "chat-second", "d": "chat", "e": long} {
		c := work.Conversation{ID: "conv_" + id, Owner: me, Created: newClock().Now()}
		metadata := fmt.Appendf(nil, `{"page":%q}`, page)
		if _, err := work.PutConversation(t.Context(), s, c, metadata, nil); err != nil {
			t.Fatal(err)
		}
		c.ID, c.Owner = c.ID+"_other", other
		if _, err := work.PutConversation(t.Context(), s, c, metadata, nil); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(page, want string) {
		t.Helper()
		var listed []string
		for after := (work.Place{}); ; {
			some := work.LatestConversations(s.View(), me, page, after, 1)
			if len(some) == 0 {
				break
			}
			listed, after = append(listed, some[0].ID), some[0].Place()
		}
		if got := strings.Join(listed, " "); got != want {
			t.Errorf("page %q lists %s, want %s", page, got, want)
		}
	}
	expect("chat", "conv_d conv_b")
	expect("chat-second", "conv_c")
	expect(long, "")
	for id, metadata := range map[string]string{"conv_a": `{"page":"chat"}`, "conv_d": `{"page":"images"}`} {
		if _, err := work.SetMetadata(t.Context(), s, id, me, []byte(metadata)); err != nil {
			t.Fatal(err)
		}
	}
	expect("chat", "conv_b conv_a")
	expect("images", "conv_d")
}

func TestVerifyFindsAConversationOnAnotherPageThanItsMetadataSay(t *testing.T) {
	store := journal.NewMemory()
	s := open(t, store, newClock().Now)
	c := work.Conversation{ID: "conv_1", Owner: me}
	if _, err := work.PutConversation(t.Context(), s, c, []byte(`{"page":"chat"}`), nil); err != nil {
		t.Fatal(err)
	}
	s.Close()
	edited := fixture.Edit(t, store, journal.Body, "chat", "flow")
	fixture.WantProblem(t, store, edited, `on page "chat" and not on "flow"`)
}

// A turn excludes other turns and changes of the items until it or the process ends.
func TestATurnExcludesChangesOfItsConversation(t *testing.T) {
	store := journal.NewMemory()
	s := open(t, store, newClock().Now)
	conversation(t, s, "m1")
	turn, err := work.BeginTurn(t.Context(), s, "conv_1", me)
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"turn":   func() error { _, err := work.BeginTurn(t.Context(), s, "conv_1", me); return err },
		"add":    func() error { _, err := work.AddItems(ctx, s, "conv_1", me, itemsOf("m2")); return err },
		"drop":   func() error { _, err := work.DeleteItem(ctx, s, "conv_1", me, "m1"); return err },
		"delete": func() error { return work.DeleteConversation(ctx, s, "conv_1", me) },
	} {
		if err := call(); !errors.Is(err, work.ErrConversationInUse) {
			t.Errorf("%s during a turn: %v", name, err)
		}
	}
	if _, err := work.SetMetadata(ctx, s, "conv_1", me, []byte(`{"a":"b"}`)); err != nil {
		t.Errorf("metadata during a turn: %v", err)
	}
	again := open(t, store, newClock().Now) // the process is killed
	if turn, err := work.BeginTurn(t.Context(), again, "conv_1", me); err != nil {
		t.Errorf("after a restart: %v", err)
	} else {
		turn.End()
	}
	turn.End()
	turn.End()
	if _, err := work.AddItems(ctx, s, "conv_1", me, itemsOf("m2")); err != nil {
		t.Errorf("after its end: %v", err)
	}
	if got := idsIn(t, s, "conv_1"); !slices.Equal(got, []string{"m1", "m2"}) {
		t.Errorf("items %v", got)
	}
}

// A client that sees the end of a response can begin the next turn at once, although the turn of the response ends a
// moment after its end is visible.
func TestATurnBeginsAsSoonAsTheEndOfTheLastResponseIsVisible(t *testing.T) {
	s := open(t, journal.NewMemory(), newClock().Now)
	conversation(t, s)
	for i := range 300 {
		turn, err := work.BeginTurn(ctx, s, "conv_1", me)
		if err != nil {
			t.Fatalf("turn %d: %v", i, err)
		}
		r := newResponse(i, "in_progress")
		put(t, s, r)
		ended := make(chan error, 1)
		go func() {
			_, err := work.UpdateResponse(ctx, s, r.ID, me, work.ResponseUpdate{Status: "completed", Ends: turn})
			ended <- err
		}()
		for {
			h, err := work.FindResponse(s.View(), r.ID, me)
			if err != nil {
				t.Fatal(err)
			}
			if h.Finished() {
				break
			}
			runtime.Gosched()
		}
		next, err := work.BeginTurn(ctx, s, "conv_1", me)
		if err != nil {
			t.Fatalf("after response %d: %v", i, err)
		}
		next.End()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}

// A response adds its items in the commit that ends it with an answer. A failed or cancelled one
// adds none.
func TestAResponseAddsItsItemsWithItsEnd(t *testing.T) {
	for _, status := range []string{"completed", "incomplete", "failed", "cancelled"} {
		adds := status == "completed" || status == "incomplete"
		store := journal.NewMemory()
		s := open(t, store, newClock().Now)
		conversation(t, s, "m1")
		turn, err := work.BeginTurn(t.Context(), s, "conv_1", me)
		if err != nil {
			t.Fatal(err)
		}
		items, err := turn.Items(ctx, itemsOf("m2"), append(itemsOf("m3", "m1", "m2"), json.RawMessage(`{"type":"x"}`)))
		if err != nil {
			t.Fatal(err)
		}
		r := newResponse(1, "in_progress")
		r.Conversation, r.Position = "conv_1", turn.Conversation.Next
		put(t, s, r)
		end := work.ResponseUpdate{Status: status, Turn: items}
		if _, err := work.UpdateResponse(ctx, s, r.ID, me, end); err != nil {
			t.Fatal(err)
		}
		turn.End()
		got := idsIn(t, s, "conv_1")
		if !adds {
			if len(got) != 1 {
				t.Errorf("%s added %v", status, got)
			}
			continue
		}
		slices.Sort(got)
		if len(got) != 6 || len(slices.Compact(got)) != 6 {
			t.Errorf("%s: items %v, want six with ids of their own", status, got)
		}
		sound(t, store, status)
		// The chain that ends with the response has what the conversation had before it, and not its items twice.
		chain, err := work.ReadChain(ctx, s, r.ID, me)
		if err != nil || len(chain) == 0 || gjson.GetBytes(chain[0], "id").Str != "m1" ||
			strings.Count(fmt.Sprintf("%s", chain), `"m3"`) != 0 {
			t.Errorf("chain %s, %v", chain, err)
		}
	}
}

// Concurrent changes are all made, one after the other.
func TestItemsThatAreAddedAtOnceAreAllKept(t *testing.T) {
	store := journal.NewMemory()
	s := open(t, store, newClock().Now)
	conversation(t, s)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			both := itemsOf(fmt.Sprint("m", n), fmt.Sprint("n", n))
			if _, err := work.AddItems(ctx, s, "conv_1", me, both); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := idsIn(t, s, "conv_1")
	for i := 0; i+1 < len(got); i += 2 {
		if got[i][1:] != got[i+1][1:] {
			t.Errorf("items of two requests are mixed: %v", got)
		}
	}
	if len(got) != 16 {
		t.Errorf("%d items", len(got))
	}
	sound(t, store, "added at once")
}

// An owner has a quota of conversations and bytes, and a share of all conversations.
func TestConversationsAreBounded(t *testing.T) {
	s := newState(t)
	idOf := func(owner state.Owner, n int) string {
		return fmt.Sprint("conv_", strings.ReplaceAll(string(owner), ":", "."), n)
	}
	make := func(owner state.Owner, n int) error {
		_, err := work.PutConversation(ctx, s, work.Conversation{ID: idOf(owner, n), Owner: owner}, []byte(`{}`), nil)
		return err
	}
	var over *work.QuotaError
	work.SetResponseQuota(s, work.Quota{Conversations: 2, Bytes: 60})
	for n := range 2 {
		if err := make(me, n); err != nil {
			t.Fatal(err)
		}
	}
	if err := make(me, 2); !errors.As(err, &over) {
		t.Errorf("a third conversation: %v", err)
	}
	id := idOf(me, 0)
	if _, err := work.AddItems(ctx, s, id, me, itemsOf("a", "b", "c")); !errors.As(err, &over) {
		t.Errorf("too many bytes: %v", err)
	}
	long := []byte(`{"a":"` + strings.Repeat("x", 60) + `"}`)
	if _, err := work.SetMetadata(ctx, s, id, me, long); !errors.As(err, &over) {
		t.Errorf("too much metadata: %v", err)
	}
	work.SetResponseQuota(s, work.Quota{})
	work.ConversationPool(s).Resize(8)
	var refused *share.Refused
	var err error
	n := 2
	for ; err == nil && n < 9; n++ {
		err = make(me, n)
	}
	if !errors.As(err, &refused) || !refused.Share {
		t.Errorf("conversation %d of 8: %v", n, err)
	}
	if err := work.DeleteConversation(ctx, s, id, me); err != nil {
		t.Error(err)
	}
	if err := make(me, 99); err != nil {
		t.Errorf("in the place of a deleted one: %v", err)
	}
	if err := make(other, 1); err != nil {
		t.Errorf("another owner: %v", err)
	}
}

func TestAFullConversationTakesNoMore(t *testing.T) {
	s := newState(t)
	conversation(t, s)
	large := json.RawMessage(`{"id":"m1","text":"` + strings.Repeat("x", work.MaxConversationBytes-40) + `"}`)
	if _, err := work.AddItems(ctx, s, "conv_1", me, []json.RawMessage{large}); err != nil {
		t.Fatal(err)
	}
	if _, err := work.AddItems(ctx, s, "conv_1", me, itemsOf("m2")); !errors.Is(err, work.ErrConversationFull) {
		t.Errorf("more bytes: %v", err)
	}
	turn, err := work.BeginTurn(t.Context(), s, "conv_1", me)
	if err != nil {
		t.Fatal(err)
	}
	if err := turn.Add(ctx, itemsOf("m2")); err != nil { // the answer has been given
		t.Errorf("the end of a turn: %v", err)
	}
	turn.End()
	if _, err := work.BeginTurn(t.Context(), s, "conv_1", me); !errors.Is(err, work.ErrConversationFull) {
		t.Errorf("a turn of a full conversation: %v", err)
	}
}
