package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
)

// TestFloorsCarryEveryToken: a floor that loses work would look fast.
func TestFloorsCarryEveryToken(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(answerChat))
	defer upstream.Close()
	to, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, floor := range map[string]http.Handler{
		"plain": plain(forward(to, http.DefaultTransport)),
		"peek":  peek(forward(to, http.DefaultTransport)),
		"xlate": &translator{upstream: upstream.URL, client: http.DefaultClient},
	} {
		server := httptest.NewServer(floor)
		shape := chatShape
		if name == "xlate" {
			shape = messagesShape
		}
		for _, l := range []load{{shape, "whole-1024", 1 << 10, 0}, {shape, "stream-20-1", 64 << 10, 20}} {
			var worst time.Duration
			err := l.once(context.Background(), server.Client(), server.URL, l.body(),
				func(d time.Duration) { worst = max(worst, d) })
			if err != nil {
				t.Errorf("%s, %s: %v", name, l.model, err)
			}
			if worst <= 0 || worst > 5*time.Second {
				t.Errorf("%s, %s: a token was on its way for %s", name, l.model, worst)
			}
		}
		server.Close()
	}
}

func TestLostTokenIsNoticed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeStream(w, httptest.NewRequest(http.MethodPost, "/", nil), 19, 0)
	}))
	defer server.Close()
	l := load{chatShape, "stream-20-0", 100, 20}
	if err := l.once(context.Background(), server.Client(), server.URL, l.body(), func(time.Duration) {}); err == nil {
		t.Error("a stream of 19 tokens passed for one of 20")
	}
}

func TestStampHasItsLength(t *testing.T) {
	if got := len(stamp(time.Now())); got != stampLength {
		t.Errorf("a stamp has %d characters, want %d", got, stampLength)
	}
}

func TestOwnProcessCanBeObserved(t *testing.T) {
	if used, err := processorTime(os.Getpid()); err != nil || used < 0 {
		t.Errorf("processor time %s, %v", used, err)
	}
	if rss, err := memory(os.Getpid()); err != nil || rss < 1<<20 {
		t.Errorf("memory %d, %v", rss, err)
	}
}

func TestTableComparesWithTheFirstTarget(t *testing.T) {
	s := scenario{name: "x", targets: []string{"floor", "ours"}}
	one := result{took: time.Second, processor: time.Millisecond}.summed([][]time.Duration{{1, 2}, {3, 4}})
	two := one
	two.took *= 2
	var b strings.Builder
	s.print(&b, map[string][]result{"floor": {one}, "ours": {two}})
	if !strings.Contains(b.String(), "0.50") {
		t.Errorf("half the rate is not in the table:\n%s", b.String())
	}
}
