package upstream_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

const providerKey = "upstream-pass-phrase-77"

// shown returns the text that a client gets of a provider's message.
func shown(message string) string {
	f := upstream.Refused(dialogue.Traits{}, 400, http.Header{}, &dialogue.Error{Status: 400, Message: message},
		providerKey)
	return f.Err.Message
}

func TestAddressesAndKeysNeverReachAClient(t *testing.T) {
	for _, c := range []struct{ message, want string }{
		{"max_tokens: must be at most 4096", "max_tokens: must be at most 4096"},
		{"messages.0.content: text.format is unknown", "messages.0.content: text.format is unknown"},
		{"limit reached at 2025-01-01T12:30:00Z, used 9000 of 10000 (99.9%)",
			"limit reached at 2025-01-01T12:30:00Z, used 9000 of 10000 (99.9%)"},
		{"status code:429, try gpt-4.1-mini or claude-3-5", "status code:429, try gpt-4.1-mini or claude-3-5"},
		{"cannot fetch https://user:pw@files.example.com:8443/a/cat.png?sig=abc#x.",
			"cannot fetch https://[redacted]/a/cat.png"},
		{`see "https://docs.example.com/errors" (http://[fd00::1]:80/x)`,
			`see "https://[redacted]/errors" (http://[redacted]/x)`},
		{"http://gpu-7", "http://[redacted]"},
		{"wss://10.1.2.3:9/s and redis://cache:6379/0", "wss://[redacted]/s and redis://[redacted]/0"},
		{"dial tcp 10.0.0.7:8080: connect: connection refused", "dial tcp [redacted]: connect: connection refused"},
		{"lookup models on 10.96.0.10:53: no such host", "lookup [redacted] on [redacted]: no such host"},
		{"no route to 192.168.1.20", "no route to [redacted]"},
		{"no route to [2001:db8::1]:443 or 2001:db8:0:1:1:1:1:1 or fe80::1",
			"no route to [redacted] or [redacted] or [redacted]"},
		{"worker-3.pool:50051 is draining", "[redacted] is draining"},
		{"api.vendor.internal did not answer, nor did LOCALHOST:11434",
			"[redacted] did not answer, nor did [redacted]"},
		{"Incorrect API key provided: sk-proj-Ab12****9xYz.", "Incorrect API key provided: [redacted]."},
		{"the key sk_live_1234567 and gsk_abcdefghijklmnop123", "the key [redacted] and [redacted]"},
		{"AIzaSyA1234567890abcdefghij is blocked", "[redacted] is blocked"},
		{"Authorization: Bearer eyJhbGciOi.eyJzdWIi.c2ln", "Authorization: Bearer [redacted]"},
		{"bad query ?api_key=abc&token=def", "bad query ?api_key=[redacted]&token=[redacted]"},
		{"key " + providerKey + " is out of credit", "key [redacted] is out of credit"},
		{"the task-force asked about a disk-drive", "the task-force asked about a disk-drive"},
		{"bad \xff byte", "bad \uFFFD byte"},
		{"", ""},
	} {
		if got := shown(c.message); got != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.message, got, c.want)
		}
	}
}

func TestNoFormOfAProvidersKeyReachesAClient(t *testing.T) {
	const key = "Zx9/qW+7<Lm>&Tt-0123456789_abcdefg"
	quoted, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	every := func(format string) (out string) {
		for i := range len(key) {
			out += fmt.Sprintf(format, key[i])
		}
		return out
	}
	forms := map[string]string{
		"itself":                  key,
		"in capitals":             strings.ToUpper(key),
		"its first 8 characters":  key[:8],
		"its first 9 characters":  key[:9],
		"its last 8 characters":   key[len(key)-8:],
		"a piece of it":           key[5:17],
		"shortened for display":   key[:12] + "..." + key[len(key)-9:],
		"base64":                  base64.StdEncoding.EncodeToString([]byte(key)),
		"base64 without padding":  base64.RawStdEncoding.EncodeToString([]byte(key)),
		"base64 for URLs":         base64.URLEncoding.EncodeToString([]byte(key)),
		"base64 of its beginning": base64.StdEncoding.EncodeToString([]byte(key[:12])),
		"base64 of a header":      base64.StdEncoding.EncodeToString([]byte("Bearer " + key)),
		"base64 of user and key":  base64.StdEncoding.EncodeToString([]byte("user:" + key + "\n")),
		"hexadecimal":             hex.EncodeToString([]byte(key)),
		"hexadecimal in capitals": strings.ToUpper(hex.EncodeToString([]byte(key))),
		"a query":                 url.QueryEscape(key),
		"a path":                  url.PathEscape(key),
		"a query in small hex":    strings.ToLower(url.QueryEscape(key)),
		"percent encoded":         every("%%%02X"),
		"percent encoded, small":  every("%%%02x"),
		"JSON":                    string(quoted),
		"JSON with escaped slash": strings.ReplaceAll(string(quoted), "/", `\/`),
	}
	for name, form := range forms {
		e := upstream.InStream(
			dialogue.Traits{},
			&dialogue.Error{
				Status:            400,
				Message:           "the word " + form + " was refused",
				Param:             form,
				Type:              form,
				Code:              form,
				ModerationDetails: json.RawMessage(`{"input":` + strconv.Quote(form) + `}`),
			},
			"another-key-entirely",
			key,
		).Err
		if got := strings.Trim(strings.ReplaceAll(e.Message, "[redacted]", ""), "."); len(
			got,
		) > len("the word  was refused")+12 {
			t.Errorf("%s: the message is %q", name, e.Message)
		}
		if !strings.HasPrefix(e.Message, "the word ") || !strings.HasSuffix(e.Message, " was refused") {
			t.Errorf("%s: more than the key is gone: %q", name, e.Message)
		}
		if e.Param != "" || e.Type != "" || e.Code != nil || e.ModerationDetails != nil {
			t.Errorf("%s: got %+v", name, e)
		}
	}
}

// TestNoSecretHeaderReachesAClient: the headers of the configuration often hold a key, too.
func TestNoSecretHeaderReachesAClient(t *testing.T) {
	const key, other, credential = "a-key-of-the-provider", "header-pass-phrase-1", "opaque/credential+42"
	var status int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintf(w, "%s, %s, %s and %s", r.Header.Get("Authorization"), r.Header.Get("X-Auth"),
			base64.RawStdEncoding.EncodeToString([]byte(other)), base64.RawURLEncoding.EncodeToString([]byte(credential)))
	}))
	defer server.Close()
	client, err := upstream.New(upstream.Options{BaseURL: server.URL, APIKeys: []string{key},
		Headers: map[string]string{"X-Auth": other, "Authorization": "Token " + credential}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	dialect := upstream.Dialect{Authorize: func(http.Header, string) {},
		DecodeError: func(status int, _ http.Header, body []byte) *dialogue.Error {
			return dialogue.Reported(status, "", "", string(body))
		}}
	status = 400
	_, err = client.SendWithKey(t.Context(), upstream.Request{Method: http.MethodGet, Path: "/x"}, dialect)
	var f *upstream.Failure
	if !errors.As(err, &f) || f.Err.Message != "[redacted], [redacted], [redacted] and [redacted]" {
		t.Errorf("got %v", err)
	}
	_, message := client.CleanFault("", "the header was "+other)
	if message != "the header was [redacted]" {
		t.Errorf("a fault of a job: %q", message)
	}
	for _, secret := range []string{key, other, credential} {
		if !slices.Contains(client.Secrets(), secret) {
			t.Errorf("%q is no secret", secret)
		}
	}
}

func TestLongMessagesAreCutBetweenCharacters(t *testing.T) {
	for _, filler := range []string{"a", "ä", "日", "🙂"} {
		got := shown(strings.Repeat(filler, 10_000))
		if len(got) > 2<<10+3 || !utf8.ValidString(got) || !strings.HasSuffix(got, filler+"...") {
			t.Errorf("%s: %d bytes, valid %v, ends in %q", filler, len(got), utf8.ValidString(got), got[len(got)-8:])
		}
	}
}

func TestWordsThatHoldASecretAreLeftOut(t *testing.T) {
	f := upstream.InStream(
		dialogue.Traits{},
		&dialogue.Error{Status: 400, Message: "no", Type: "err_" + providerKey, Param: "https://host/x",
			Code: json.RawMessage(`"sk-abcdefgh"`)},
		providerKey,
	)
	if e := f.Err; e.Type != "" || e.Param != "" || e.Code != nil || e.Message != "no" {
		t.Errorf("got %+v", e)
	}
	f = upstream.InStream(dialogue.Traits{},
		&dialogue.Error{Status: 400, Type: "invalid_request_error", Param: "messages.0.role", Code: "invalid_value"},
		providerKey)
	if e := f.Err; e.Type != "invalid_request_error" || e.Param != "messages.0.role" || e.Code != "invalid_value" {
		t.Errorf("got %+v", e)
	}
}

func TestARefusedKeyIsNotLogged(t *testing.T) {
	f := upstream.Refused(dialogue.Traits{Overloaded529: true}, 401, http.Header{},
		&dialogue.Error{Status: 401, Message: "Incorrect API key provided: " + providerKey}, providerKey)
	if f.Err.Status != 502 || f.Class != upstream.Credential {
		t.Errorf("got %d, class %d", f.Err.Status, f.Class)
	}
	if strings.Contains(f.Err.Error(), providerKey) {
		t.Errorf("the cause holds the key: %s", f.Err)
	}
}

func TestScrubbingLeavesTheShapesErrorAlone(t *testing.T) {
	decoded := &dialogue.Error{Status: 400, Message: "see http://h/x"}
	upstream.Refused(dialogue.Traits{}, 400, nil, decoded)
	if decoded.Message != "see http://h/x" {
		t.Errorf("the decoded error was written to: %q", decoded.Message)
	}
}

func FuzzScrub(f *testing.F) {
	f.Add("dial tcp 10.0.0.7:8080: https://a:b@c.d/e?f")
	f.Add("::::::1:2:3:4[::]%lo http://")
	f.Fuzz(func(t *testing.T, message string) {
		got := shown("x " + message + " " + providerKey)
		if !utf8.ValidString(got) || len(got) > 2<<10+3 || strings.Contains(got, providerKey) {
			t.Errorf("%q", got)
		}
	})
}
