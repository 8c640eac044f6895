package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
)

// benchKey is the key that clients send and floors check.
const benchKey = "sd-bench"

// serveFloor runs a floor, which is a program that does the least of a gateway's work with the same server and
// client of net/http. What the gateway costs above it is the price of what the gateway does more. There are
//
//	plain  forwards and does nothing else
//	peek   checks the key and reads the model, the least a gateway does
//	xlate  turns messages into chat and back with encoding/json
func serveFloor(args []string) error {
	set := flag.NewFlagSet("floor", flag.ContinueOnError)
	kind := set.String("kind", "plain", "plain, peek or xlate")
	upstream := set.String("upstream", "", "address of the provider")
	if err := set.Parse(args); err != nil {
		return err
	}
	to, err := url.Parse(*upstream)
	if err != nil {
		return err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 4096, DisableCompression: true}
	switch *kind {
	case "plain":
		return serve(plain(forward(to, transport)))
	case "peek":
		return serve(peek(forward(to, transport)))
	case "xlate":
		return serve(&translator{upstream: *upstream, client: &http.Client{Transport: transport}})
	}
	return fmt.Errorf("no floor is called %q", *kind)
}

// forward returns the proxy that all floors use, with the key of the upstream.
func forward(to *url.URL, transport http.RoundTripper) http.Handler {
	return &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // each token at once
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Header.Set("Authorization", "Bearer sk-upstream")
		},
	}
}

// authorized compares the key in constant time, because the gateway does that, too.
func authorized(r *http.Request) bool {
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if key == "" {
		key = r.Header.Get("x-api-key")
	}
	got, want := sha256.Sum256([]byte(key)), sha256.Sum256([]byte(benchKey))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// plain keeps net/http from closing the request's body when the reply begins: the
// transport may not have seen its end yet, and would give up the connection.
func plain(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			http.Error(w, "", http.StatusInternalServerError)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// peek returns a handler that reads the body for its model before next gets it.
func peek(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !authorized(r) {
			http.Error(w, "", http.StatusUnauthorized)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || modelIn(body) == "" {
			http.Error(w, "", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// A translator answers messages requests from a chat provider. It knows nothing but text, so it is a lower
// bound for what a translation by encoding/json costs.
type translator struct {
	upstream string
	client   *http.Client
}

type messagesRequest struct {
	Model     string `json:"model"`
	MaxTokens int    `json:"max_tokens"`
	Stream    bool   `json:"stream"`
	Messages  []turn `json:"messages"`
}

type turn struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type chatRequest struct {
	Model     string `json:"model"`
	MaxTokens int    `json:"max_completion_tokens"`
	Stream    bool   `json:"stream,omitempty"`
	Messages  []turn `json:"messages"`
}

// chatReply is a whole reply or a chunk.
type chatReply struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Choices []struct {
		Message turn   `json:"message"`
		Delta   turn   `json:"delta"`
		Finish  string `json:"finish_reason"`
	} `json:"choices"`
	Usage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	} `json:"usage"`
}

func (t *translator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !authorized(r) {
		http.Error(w, "", http.StatusUnauthorized)
		return
	}
	var in messagesRequest
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, "", http.StatusBadRequest)
		return
	}
	body, err := json.Marshal(chatRequest(in))
	if err != nil {
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	q, err := http.NewRequestWithContext(r.Context(), http.MethodPost, t.upstream+"/v1/chat/completions",
		bytes.NewReader(body))
	if err != nil {
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	q.Header.Set("Content-Type", "application/json")
	response, err := t.client.Do(q)
	if err != nil {
		http.Error(w, "", http.StatusBadGateway)
		return
	}
	defer response.Body.Close()
	if in.Stream {
		streamMessage(w, response.Body)
		return
	}
	wholeMessage(w, response.Body)
}

// wholeMessage writes a reply in the shape messages.
func wholeMessage(w http.ResponseWriter, body io.Reader) {
	var reply chatReply
	if err := json.NewDecoder(body).Decode(&reply); err != nil || len(reply.Choices) == 0 {
		http.Error(w, "", http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": reply.ID, "type": "message", "role": "assistant", "model": reply.Model,
		"content":     []any{map[string]any{"type": "text", "text": reply.Choices[0].Message.Content}},
		"stop_reason": "end_turn", "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": reply.Usage.Prompt, "output_tokens": reply.Usage.Completion},
	})
}
