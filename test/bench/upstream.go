package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The fake provider speaks chat. The model's name is the order: whole-BYTES is a
// reply with that much text, stream-TOKENS-MILLISECONDS a stream with a pause before
// each token. Every token carries the time it was written, so that a reader on the
// same machine knows how long it was on its way.

// stamp marks a token with a time; the text around it is of no matter.
func stamp(at time.Time) string { return "@" + strconv.FormatInt(at.UnixNano(), 10) + ";" }

// stampLength is the length of a stamp: a mark, 19 digits until the year 2286, an end.
const stampLength = 21

// serveUpstream runs the fake provider.
func serveUpstream([]string) error {
	return serve(http.HandlerFunc(answerChat))
}

// answerChat answers as the name of the model says: whole-BYTES or stream-TOKENS-MILLISECONDS.
func answerChat(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller has gone
	}
	kind, order, _ := strings.Cut(modelIn(body), "-")
	switch kind {
	case "whole":
		n, _ := strconv.Atoi(order)
		writeWhole(w, n)
	case "stream":
		tokens, pause, _ := strings.Cut(order, "-")
		n, _ := strconv.Atoi(tokens)
		ms, _ := strconv.Atoi(pause)
		writeStream(w, r, n, time.Duration(ms)*time.Millisecond)
	default:
		http.Error(w, `{"error":{"message":"no such order"}}`, http.StatusNotFound)
	}
}

// modelIn finds the model without parsing: the provider must stay cheap.
func modelIn(body []byte) string {
	_, rest, found := bytes.Cut(body, []byte(`"model"`))
	if !found {
		return ""
	}
	parts := bytes.SplitN(rest, []byte(`"`), 3)
	if len(parts) < 3 {
		return ""
	}
	return string(parts[1])
}

// writeWhole writes a reply of n bytes of text, with the time at which it was written.
func writeWhole(w http.ResponseWriter, n int) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":"chatcmpl-1","object":"chat.completion","created":1760000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"%s%s"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}}`,
		stamp(time.Now()), strings.Repeat("z", max(0, n-stampLength)))
}

const chunkHead = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1760000000,"model":"m","choices":[{"index":0,"delta":`

// writeStream writes a stream. Each token has the time at which it was written, from which the client knows its lag.
func writeStream(w http.ResponseWriter, r *http.Request, tokens int, pause time.Duration) {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	_, _ = io.WriteString(w, chunkHead+`{"role":"assistant","content":""},"finish_reason":null}]}`+"\n\n")
	for range tokens {
		if pause > 0 {
			_ = flush.Flush()
			select {
			case <-time.After(pause):
			case <-r.Context().Done():
				return
			}
		}
		if _, err := io.WriteString(w, chunkHead+`{"content":"`+stamp(time.Now())+`"},"finish_reason":null}]}`+"\n\n"); err != nil {
			return
		}
		_ = flush.Flush()
	}
	_, _ = io.WriteString(w, chunkHead+`{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
}
