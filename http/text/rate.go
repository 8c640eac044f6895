package text

import (
	"net/http"
	"strconv"
	"time"

	"stagedoor/actors/throttle"
)

// rateHeaders tells a client where its key stands (wire/errors.md 7). A limit
// the key does not have has no headers.
func rateHeaders(h http.Header, requests, tokens throttle.Level) {
	rateHeader(h, "Requests", requests)
	rateHeader(h, "Tokens", tokens)
}

func rateHeader(h http.Header, of string, l throttle.Level) {
	if l.Limit == 0 {
		return
	}
	h.Set("X-Ratelimit-Limit-"+of, strconv.Itoa(l.Limit))
	h.Set("X-Ratelimit-Remaining-"+of, strconv.Itoa(l.Remaining))
	h.Set("X-Ratelimit-Reset-"+of, l.Reset.Round(time.Millisecond).String())
}
