package upstream_test

import (
	"net/http"
	"testing"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// One vendor sends the time in the body only, and an event in a stream has no header.
func TestTheTimeToRetryIsReadFromHeaderOrBody(t *testing.T) {
	header := func(v string) http.Header { return http.Header{"Retry-After": {v}} }
	for name, test := range map[string]struct {
		header               http.Header
		body, asked, clients time.Duration
	}{
		"neither":           {header: http.Header{}},
		"header":            {header: header("7"), asked: 7 * time.Second, clients: 7 * time.Second},
		"body":              {header: http.Header{}, body: 37 * time.Second, asked: 37 * time.Second, clients: 37 * time.Second},
		"both":              {header: header("7"), body: 37 * time.Second, asked: 7 * time.Second, clients: 7 * time.Second},
		"long":              {header: header("600"), asked: 10 * time.Minute, clients: time.Minute},
		"long, body":        {body: 10 * time.Minute, asked: 10 * time.Minute, clients: time.Minute},
		"for ever":          {body: 1000 * time.Hour, asked: time.Hour, clients: time.Minute},
		"header is garbage": {header: header("soon"), body: 5 * time.Second, asked: 5 * time.Second, clients: 5 * time.Second},
		"negative":          {body: -time.Second},
	} {
		f := upstream.Refused(dialogue.Traits{}, 429, test.header,
			&dialogue.Error{Status: 429, Type: dialogue.TypeRateLimit, RetryAfter: test.body})
		if f.RetryAfter != test.asked || f.Err.RetryAfter != test.clients {
			t.Errorf("%s: got %s, clients get %s; want %s and %s", name, f.RetryAfter, f.Err.RetryAfter, test.asked,
				test.clients)
		}
	}
	if f := upstream.InStream(dialogue.Traits{Overloaded529: true}, &dialogue.Error{Status: 529, RetryAfter: 3 * time.Second}); f.RetryAfter != 3*time.Second {
		t.Errorf("an event in a stream: got %s", f.RetryAfter)
	}
}

func TestRetryAfterIsReadInEveryForm(t *testing.T) {
	const date = "Tue, 14 Nov 2023 22:13:20 GMT"
	now := time.Date(2023, 11, 14, 22, 13, 0, 0, time.UTC) // 20 s behind the upstream
	for value, want := range map[string]time.Duration{"": 0, "2": 2 * time.Second, "0.5": 500 * time.Millisecond, " 7 ": 7 * time.Second,
		"3600": time.Hour, "1e300": time.Hour, "-1": 0, "NaN": 0, "soon": 0,
		"Tue, 14 Nov 2023 22:13:30 GMT": 10 * time.Second, "Tue, 14 Nov 2023 22:00:00 GMT": 0} {
		if got := upstream.RetryAfter(http.Header{"Retry-After": {value}, "Date": {date}}, now); got != want {
			t.Errorf("%q: got %s, want %s", value, got, want)
		}
	}
	for name, test := range map[string]struct {
		header http.Header
		want   time.Duration
	}{
		"no date of the reply":         {http.Header{"Retry-After": {"Tue, 14 Nov 2023 22:13:30 GMT"}}, 30 * time.Second},
		"milliseconds go first":        {http.Header{"Retry-After": {"2"}, "Retry-After-Ms": {"1500"}}, 1500 * time.Millisecond},
		"milliseconds that are no use": {http.Header{"Retry-After": {"2"}, "Retry-After-Ms": {"-1"}}, 2 * time.Second},
	} {
		if got := upstream.RetryAfter(test.header, now); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}
