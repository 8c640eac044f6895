package responses_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/responses"
)

func joined(items []json.RawMessage) string {
	var all []string
	for _, item := range items {
		all = append(all, string(item))
	}
	return strings.Join(all, " ")
}

func TestInputItemsAreSpelledOut(t *testing.T) {
	for body, wanted := range map[string]string{
		`{"input":"a\u0041"}`:                            `{"id":"msg_id1","type":"message","role":"user","content":[{"type":"input_text","text":"a\u0041"}]}`,
		`{"input":[{"role":"assistant","content":"a"}]}`: `{"id":"msg_id1","type":"message","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[]}]}`,
		`{"input":[{"type":"message","id":"m","role":"user","content":[]},{"type":"x","n":1.0}]}`: `{"type":"message","id":"m","role":"user","content":[]} {"id":"item_id1","type":"x","n":1.0}`,
		`{}`: "",
	} {
		want(t, body, joined(responses.InputItems([]byte(body), newEnv().ID)), wanted)
	}
}

func TestPrependPutsTheChainInFront(t *testing.T) {
	body := []byte(`{"model":"m","input":"new","previous_response_id":"r","zzz":1.0}`)
	got := responses.Prepend(body, []json.RawMessage{json.RawMessage(`{"old":1}`)})
	want(t, "body", string(got), `{"model":"m","input":[{"old":1},{"type":"message","role":"user","content":[{"type":"input_text","text":"new"}]}],"zzz":1.0}`)
	want(t, "original", string(body), `{"model":"m","input":"new","previous_response_id":"r","zzz":1.0}`)
	got = responses.Prepend([]byte(`{"model":"m","previous_response_id":"r"}`), []json.RawMessage{json.RawMessage(`1`)})
	want(t, "without input", string(got), `{"model":"m","input":[1]}`)
}

func TestReferencesAreResolved(t *testing.T) {
	var grown int64
	grow := func(n int64) *dialogue.Error { grown += n; return nil }
	known := map[string]json.RawMessage{"msg_1": json.RawMessage(`{"id":"msg_1"}`)}
	body := []byte(`{"input":[{"type":"item_reference","id":"msg_1"},{"role":"user","content":"x"}]}`)
	want(t, "references", strings.Join(responses.References(body), " "), "msg_1")
	got, err := responses.Resolve(body, known, false, 1<<20, grow)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "body", string(got), `{"input":[{"id":"msg_1"},{"role":"user","content":"x"}]}`)
	unknown := []byte(`{"input":[{"id":"msg_2"},{"id":"msg_1"}]}`)
	if _, err := responses.Resolve(unknown, known, false, 1<<20, grow); err == nil || err.Status != 404 {
		t.Errorf("unknown item: got %v", err)
	}
	got, err = responses.Resolve(unknown, known, true, 1<<20, grow)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "forwarded", string(got), `{"input":[{"id":"msg_2"},{"id":"msg_1"}]}`)

	long := map[string]json.RawMessage{"msg_1": json.RawMessage(`{"id":"` + strings.Repeat("x", 1000) + `"}`)}
	references := strings.Repeat(`{"type":"item_reference","id":"msg_1"},`, 100)
	many := []byte(`{"input":[` + strings.TrimSuffix(references, ",") + `]}`)
	grown = 0
	if got, err = responses.Resolve(many, long, false, 200<<10, grow); err != nil || grown < int64(len(got)) {
		t.Errorf("a body of %d bytes: %d were claimed, %v", len(got), grown, err)
	}
	grown = 0
	if _, err := responses.Resolve(many, long, false, 100<<10, grow); err == nil || err.Param != "input" || grown != 0 {
		t.Errorf("a body beyond the bound: %v, and %d bytes were claimed", err, grown)
	}
	full := func(int64) *dialogue.Error { return dialogue.NoMemory(nil) }
	if _, err := responses.Resolve(many, long, false, 200<<10, full); err == nil || err.Status != 503 {
		t.Errorf("without memory: %v", err)
	}
}

func TestLifeOfAStoredResponse(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	queued := responses.Queued([]byte(`{"model":"m","input":"x","background":true,"previous_response_id":"r"}`),
		"resp_1", now)
	want(t, "queued", responses.Status(queued), "queued")
	want(t, "id", gjson.GetBytes(queued, "id").Str, "resp_1")
	want(t, "previous", gjson.GetBytes(queued, "previous_response_id").Str, "r")
	want(t, "background", gjson.GetBytes(queued, "background").Raw, "true")
	want(t, "usage", gjson.GetBytes(queued, "usage").Raw, "null")
	cancelled := responses.Cancelled(queued, now)
	want(t, "cancelled", responses.Status(cancelled), "cancelled")
	done := []byte(`{"status":"completed","completed_at":3,"output":[{"id":"a"}]}`)
	want(t, "ended already", string(responses.Cancelled(done, now)), string(done))
	failed := responses.Failed(queued, &dialogue.Error{Status: 500, Message: "m"})
	want(t, "failed", gjson.GetBytes(failed, "error").Raw, `{"code":"server_error","message":"m"}`)
	want(t, "output", joined(responses.OutputItems(done)), `{"id":"a"}`)
	want(t, "deleted", string(responses.Deleted("resp_1")), `{"id":"resp_1","object":"response","deleted":true}`)
}

// itemList returns a page of items as they are.
func itemList(items []json.RawMessage, limit int, order, after string) ([]byte, *dialogue.Error) {
	page, err := responses.NewItemPage(limit, order, after)
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		if page.Add(it) {
			break
		}
	}
	return page.List(func(it json.RawMessage) json.RawMessage { return it })
}

func TestItemsComeInPages(t *testing.T) {
	items := []json.RawMessage{json.RawMessage(`{"id":"a"}`), json.RawMessage(`{"id":"b"}`),
		json.RawMessage(`{"id":"c"}`)}
	for _, tt := range []struct {
		limit        int
		order, after string
		want, param  string
	}{
		{0, "", "", `{"object":"list","data":[{"id":"c"},{"id":"b"},{"id":"a"}],"first_id":"c","last_id":"a","has_more":false}`, ""},
		{2, "asc", "", `{"object":"list","data":[{"id":"a"},{"id":"b"}],"first_id":"a","last_id":"b","has_more":true}`,
			""},
		{2, "asc", "b", `{"object":"list","data":[{"id":"c"}],"first_id":"c","last_id":"c","has_more":false}`, ""},
		{2, "", "a", `{"object":"list","data":[],"first_id":null,"last_id":null,"has_more":false}`, ""},
		{101, "", "", "", "limit"},
		{1, "up", "", "", "order"},
		{1, "", "zz", "", "after"},
	} {
		got, err := itemList(items, tt.limit, tt.order, tt.after)
		want(t, "page", string(got), tt.want)
		if tt.param != "" && (err == nil || err.Param != tt.param) {
			t.Errorf("got %v, want an error about %s", err, tt.param)
		}
	}
	want(t, "order of the store", joined(items), `{"id":"a"} {"id":"b"} {"id":"c"}`)
}
