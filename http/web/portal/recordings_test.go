package portal_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/recording"
	"stagedoor/actors/tokens"
	"stagedoor/http/web/portal"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/recordings"
	"stagedoor/state/requestlog"
)

// recorded has the exchanges of requests by their ids.
type recorded struct {
	all map[string]*recording.Exchange
	err error
	off bool
	// node is the gateway of the last exchange that was looked for.
	node string
}

func (r *recorded) Find(_ context.Context, node, key, id string, from, to time.Time) (*recording.Exchange, error) {
	x := r.all[key+" "+id]
	r.node = node
	switch {
	case r.err != nil:
		return nil, r.err
	case x == nil || x.Began.Before(from) || x.Began.After(to):
		return nil, state.ErrNotFound
	}
	copied := *x
	return &copied, nil
}

func (r *recorded) Limits() recordings.Limits {
	if r.off {
		return recordings.Limits{}
	}
	return recordings.Limits{Keep: 72 * time.Hour}
}

// exchange is one with an attempt, whose bodies have so many bytes more.
func exchange(more int) *recording.Exchange {
	rest := strings.Repeat(" <b>&", more/5)
	return &recording.Exchange{ID: "req_1", Began: time.Now(), Millis: 900,
		Client: recording.Client{Shape: "chat", Path: "/v1/chat/completions",
			Header: http.Header{"Authorization": {"[redacted]"}},
			Body:   recording.Bytes(`{"messages":[{"content":"my secret plan` + rest + `"}]}`)},
		Attempts: []recording.Attempt{{Target: dialogue.Target{Provider: "openai", Model: "m1"},
			Calls: []recording.Call{{Path: "/chat", Body: recording.Bytes("sent upstream" + rest), Status: 200,
				ReplyHeader: http.Header{"Openai-Organization": {"org-of-the-operator"}},
				ReplyBody:   recording.Bytes("upstream answered" + rest)}}}},
		Reply: recording.Reply{Body: recording.Bytes("data: {\"delta\":\"the <i>answer\"}\n\ndata: [DONE]\n\n" + rest)}}
}

// recordedRequest is a fixture with a logged request of mia's key that was recorded.
func recordedRequest(t *testing.T) *ledGroups {
	t.Helper()
	h := newLedGroups(t)
	h.requests.all = []requestlog.Record{{At: 1, Began: time.Now(), Took: time.Second, ID: "req_1", User: "mia",
		Owner: string(state.OwnerOf("", "mia")), Key: h.miaKey.ID, KeyName: "mias-laptop", Group: "staff", Model: "m1",
		Provider: "openai", Status: 200}}
	h.recorded.all = map[string]*recording.Exchange{h.miaKey.ID + " req_1": exchange(0)}
	return h
}

// readings returns how many readings of recordings are in the audit log.
func (h *fixture) readings() (n int) {
	h.t.Helper()
	for r, err := range h.state.AuditLog(h.t.Context(), state.AuditQuery{Action: "recording.read"}) {
		if err != nil {
			h.t.Fatal(err)
		}
		if r.Actor.Name != "root" || r.Target.Name != "mias-laptop" {
			h.t.Errorf("the audit log has %+v", r)
		}
		n++
	}
	return n
}

// TestARecordingIsReadByItsOwnerAndByAdministrators: the owner sees nothing of providers, a lead sees nothing, and the
// audit log has each reading of an administrator.
func TestARecordingIsReadByItsOwnerAndByAdministrators(t *testing.T) {
	h := recordedRequest(t)
	const sent, answered, upstream = "my secret plan", "the &lt;i&gt;answer", "org-of-the-operator"
	for name, sees := range map[string][3]bool{"root": {true, true, true}, "mia": {true, true, false}, "lea": {}} {
		v := h.signedIn(name)
		v.expect(v.get("/requests/1"), http.StatusOK, "")
		for i, text := range []string{sent, answered, upstream} {
			if strings.Contains(v.page, text) != sees[i] {
				t.Errorf("%s sees %q: %v\n%s", name, text, !sees[i], v.page)
			}
		}
		status := http.StatusNotFound
		if sees[0] {
			status = http.StatusOK
		}
		v.expect(v.get("/requests/1/recording.json"), status, "")
		if strings.Contains(v.page, upstream) != sees[2] || strings.Contains(v.page, sent) != sees[0] {
			t.Errorf("the file of %s: %s", name, v.page)
		}
	}
	if n := h.readings(); n != 2 {
		t.Errorf("%d readings in the audit log", n)
	}
	anna := h.signedIn("anna")
	anna.expect(anna.get("/requests/1"), http.StatusNotFound, "")
	anna.expect(anna.get("/requests/1/recording.json"), http.StatusNotFound, "")
	stranger := h.visitor()
	stranger.sentTo(stranger.get("/requests/1/recording.json"), "/signin?next=%2Frequests%2F1%2Frecording.json")
	root := h.signedIn("root")
	for _, path := range []string{"/requests/2/recording.json", "/requests/x/recording.json"} {
		root.expect(root.get(path), http.StatusNotFound, "")
	}
}

func TestThePageOfARequestSaysThatPagesAreNotRecorded(t *testing.T) {
	h := recordedRequest(t)
	h.requests.all[0].Key = "chat_1"
	root := h.signedIn("root")
	root.expect(root.get("/requests/1"), http.StatusOK, "sent by the page <code>/chat</code>")
	if strings.Contains(root.page, "Record the key") {
		t.Error("an administrator is asked to record a key that does not exist")
	}
}

// TestThePageOfALargeRecordingIsBounded and says what it leaves out. The file has all of it.
func TestThePageOfALargeRecordingIsBounded(t *testing.T) {
	h := recordedRequest(t)
	x := exchange(200_000)
	for range 50 {
		x.Attempts = append(x.Attempts, x.Attempts[0])
	}
	x.Client.Body = recording.Bytes(strings.Repeat("[", 5000) + string(x.Client.Body)) // would be large if indented
	x.Attempts[0].Calls[0].Body = recording.Bytes(strings.Repeat("QUJD", 20_000))
	x.Shortened = true
	h.recorded.all[h.miaKey.ID+" req_1"] = x
	root := h.signedIn("root")
	root.expect(root.get("/requests/1"), http.StatusOK, "characters are left out here")
	if n := len(root.page); n > 100_000 {
		t.Errorf("the page has %d bytes", n)
	}
	for _, want := range []string{"80,000 characters)", "Long bodies were cut", "Attempt 51, openai, m1"} {
		if !strings.Contains(root.page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if root.get("/requests/1/recording.json"); len(root.page) < 10_000_000 {
		t.Errorf("the file has %d bytes", len(root.page))
	}
}

// TestAnAdministratorHasAKeyRecorded for a while, and its owner sees it.
func TestAnAdministratorHasAKeyRecorded(t *testing.T) {
	h := recordedRequest(t)
	h.recorded.all = nil
	root, mia := h.signedIn("root"), h.signedIn("mia")
	mia.expect(mia.get("/requests/1"), http.StatusOK, "")
	if strings.Contains(mia.page, "not recorded") {
		t.Error("the page of a user offers what only administrators can do")
	}
	root.expect(root.get("/requests/1"), http.StatusOK, `not recorded. <a href="/admin/keys?q=`+h.miaKey.ID)
	root.expect(root.get("/admin/keys?q="+h.miaKey.ID), http.StatusOK, "are kept for 3 days")
	path := "/admin/keys/" + h.miaKey.ID
	root.expect(root.post(path+"/record", "for", "1000d"), http.StatusUnprocessableEntity, "")
	mia.expect(mia.post(path+"/record", "for", "1h"), http.StatusNotFound, "")
	if k, err := identity.FindKey(h.state.View(), h.miaKey.ID); err != nil || k.RecordedUntil != nil {
		t.Errorf("recorded until %v, %v", k.RecordedUntil, err)
	}
	root.get("/admin/keys")
	root.sentTo(root.post(path+"/record", "for", "24h"), "/admin/keys?done=key_recorded")
	k, err := identity.FindKey(h.state.View(), h.miaKey.ID)
	if left := time.Until(k.Recorded(time.Now())); err != nil || left < 23*time.Hour || left > 24*time.Hour {
		t.Errorf("recorded for %v, %v", left, err)
	}
	mia.expect(mia.get("/account/keys"), http.StatusOK, "administrators can read what it sends")
	root.expect(root.get("/admin/audit?action=key.change"), http.StatusOK, "recorded until")
	root.get("/admin/keys")
	root.sentTo(root.post(path+"/unrecord"), "/admin/keys?done=key_unrecorded")
	if mia.get("/account/keys"); strings.Contains(mia.page, "administrators can read what it sends") {
		t.Error("the key is still recorded")
	}
	h.recorded.off = true
	if root.get("/admin/keys"); strings.Contains(root.page, "Start recording") {
		t.Error("a key can be recorded although nothing is kept")
	}
	root.expect(root.post(path+"/record", "for", "24h"), http.StatusUnprocessableEntity, "")
}

// TestARecordingIsReadFromItsGateway, which is named if it does not answer, and one that cannot be read leaves the rest
// of the page.
func TestARecordingIsReadFromItsGateway(t *testing.T) {
	h := recordedRequest(t)
	until := time.Now().Add(time.Hour)
	_, err := h.registry.UpdateKey(t.Context(), h.miaKey.ID, tokens.KeyChange{RecordedUntil: &until})
	if err != nil {
		t.Fatal(err)
	}
	h.requests.all[0].Node = "gw-2"
	root := h.signedIn("root")
	if root.expect(root.get("/requests/1"), http.StatusOK, "my secret plan"); h.recorded.node != "gw-2" {
		t.Errorf("the exchange was looked for at %q", h.recorded.node)
	}
	h.recorded.err = portal.ErrSilent
	root.expect(root.get("/requests/1"), http.StatusOK, "<bdi>gw-2</bdi></b> keeps it")
	root.expect(root.get("/requests/1/recording.json"), http.StatusServiceUnavailable, "")
	h.recorded.err = errors.New("the disk is broken")
	root.expect(root.get("/requests/1"), http.StatusOK, "cannot be read at the moment")
	root.expect(root.get("/requests/1/recording.json"), http.StatusServiceUnavailable, "")
	if text := fmt.Sprint(h.log.String()); !strings.Contains(text, "the disk is broken") ||
		strings.Contains(root.page, "the disk is broken") {
		t.Error("the cause is not in the log alone")
	}
}
