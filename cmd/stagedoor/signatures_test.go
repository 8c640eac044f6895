package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestOneOwnerCannotPushOutSignaturesOfOthers(t *testing.T) {
	c := newSignatureCache(100)
	for i := range 10 {
		c.Remember("ann", strconv.Itoa(i), "of ann")
	}
	for i := range 1000 {
		c.Remember("eve", strconv.Itoa(i), "of eve")
	}
	c.Remember("eve", "large", strings.Repeat("x", 200*signatureSlot))
	c.Remember("eve", "half", strings.Repeat("x", 50*signatureSlot))
	for i := range 10 {
		if s, ok := c.Recall("ann", strconv.Itoa(i)); !ok || s != "of ann" {
			t.Errorf("call %d of ann: got %q, %v, want her signature", i, s, ok)
		}
	}
	if s, ok := c.Recall("eve", "half"); !ok || len(s) != 50*signatureSlot {
		t.Errorf("the last signature of eve has %d bytes, %v", len(s), ok)
	}
	if _, ok := c.Recall("eve", "large"); ok {
		t.Error("a signature larger than the cache was kept")
	}
	if _, ok := c.Recall("bob", "1"); ok {
		t.Error("an owner got the signature of another")
	}
}

func TestSignaturesTakeAtMostTheirSlots(t *testing.T) {
	c := newSignatureCache(100)
	for i := range 1000 {
		// A call id that comes again replaces its signature.
		c.Remember("ann", strconv.Itoa(i%70), strings.Repeat("x", i%7*signatureSlot))
	}
	bytes := 0
	for i := range 70 {
		text, _ := c.Recall("ann", strconv.Itoa(i))
		bytes += len(text)
	}
	if bytes > 100*signatureSlot || c.byCall.Len() > 100 {
		t.Errorf("%d signatures with %d bytes, want at most 100 slots", c.byCall.Len(), bytes)
	}
	c.Remember("ann", "again", "first")
	c.Remember("ann", "again", "second")
	if s, _ := c.Recall("ann", "again"); s != "second" {
		t.Errorf("got %q, want the signature that came last", s)
	}
}

// Only the model that compacted a conversation can read it, so the gateway must know the model after a crash as well.
func TestACompactedConversationGoesBackToItsMakerAfterACrash(t *testing.T) {
	const item = `{"id":"cmp_1","type":"compaction","encrypted_content":"opaque"}`
	asked := make(chan string, 1)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"resp_1","object":"response","status":"completed","output":[%s]}`, item)
	}))
	defer upstream.Close()
	dir := directory(t)
	write(t, filepath.Join(dir, "stagedoor.yaml"), fmt.Sprintf(`
data: %[1]s/data
keys: [{key: sd-test, name: test}]
providers:
  first: {shape: responses, base_url: "%[2]s/first", api_keys: [k]}
  maker: {shape: responses, base_url: "%[2]s/maker", api_keys: [k]}
models:
  compacts: {targets: [{provider: maker, model: up}]}
  goes-on: {targets: [{provider: first, model: up}], fallback: [{provider: maker, model: up}]}
`, dir, upstream.URL))
	args := []string{"serve", "--listen", "127.0.0.1:0", "--config", filepath.Join(dir, "stagedoor.yaml")}
	p := launch(t, dir, args...)
	p.post("/v1/responses", "sd-test", `{"model":"compacts","store":false,"input":[{"role":"user","content":"x"},
		{"type":"compaction_trigger"}]}`)
	if at := <-asked; at != "/maker/responses" {
		t.Fatalf("the conversation was compacted at %s", at)
	}
	p.signal(syscall.SIGKILL)
	<-p.exit
	p = launch(t, dir, args...)
	p.post("/v1/responses", "sd-test", `{"model":"goes-on","store":false,"input":[`+item+`]}`)
	if at := <-asked; at != "/maker/responses" {
		t.Errorf("it went on at %s", at)
	}
	p.stop()
}
