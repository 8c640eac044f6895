package media_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
)

func pngOf(w, h int) []byte {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	m.Set(0, 0, color.Black)
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return b.Bytes()
}

var onePixel = base64.StdEncoding.EncodeToString(pngOf(1, 1))

// made returns a reply of n pictures with an unknown field.
func made(n int) string {
	data := strings.Repeat(`{"b64_json":"`+onePixel+`"},`, n)
	return `{"created":1,"future":true,"output_format":"png","size":"1024x1024","quality":"high","data":[` +
		data[:len(data)-1] +
		`],"usage":{"total_tokens":30,"input_tokens":10,"output_tokens":20,"input_tokens_details":{"text_tokens":10,"image_tokens":0}}}`
}

// answer is an upstream that always says the same.
func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestRequestsOfTheSameShapePassUntouched(t *testing.T) {
	var sent []byte
	var header http.Header
	g := open(t, func(w http.ResponseWriter, r *http.Request) {
		sent, _ = io.ReadAll(r.Body)
		header = r.Header.Clone()
		if r.URL.Path != "/v1/images/generations" {
			t.Errorf("path %s", r.URL.Path)
		}
		_, _ = io.WriteString(w, made(2))
	})
	r := g.generate(object{"model": "gen-image-1", "n": 2, "a_new_field": object{"x": 1}})
	if r.status != 200 || string(r.body) != made(2) {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if got := gjson.ParseBytes(sent); got.Get("model").Str != "gpt-image-1" || got.Get("a_new_field.x").Int() != 1 ||
		got.Get("n").Int() != 2 {
		t.Errorf("sent %s", sent)
	}
	if header.Get("Authorization") != "Bearer sk-upstream-secret" {
		t.Errorf("key %q", header.Get("Authorization"))
	}
	if got := g.spent(); got != 80_000 {
		t.Errorf("charged %d", got)
	}
	receipt := g.fetch(g.url + "/v1/receipts/" + r.header.Get("X-Request-Id"))
	if receipt.get("usage.images").Int() != 2 || receipt.get("charged").Int() != 80_000 ||
		receipt.get("end_reason").Str != "finished" {
		t.Errorf("receipt %s", receipt.body)
	}
}

// Addresses are the gateway's own, whatever the upstream's were, and end.
func TestAddressesAreTheGatewaysOwn(t *testing.T) {
	picture := pngOf(8, 4)
	g := open(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			if r.Header.Get("Authorization") != "Bearer sk-upstream-secret" && r.Header.Get("Authorization") != "" {
				t.Errorf("key %q", r.Header.Get("Authorization"))
			}
			_, _ = w.Write(picture)
			return
		}
		fmt.Fprintf(
			w,
			`{"created":5,"data":[{"url":"http://%s/files/x?sig=secret","revised_prompt":"a nicer cat"}]}`,
			r.Host,
		)
	})
	r := g.generate(object{"model": "legacy-image-3"})
	url := r.get("data.0.url").Str
	if r.status != 200 || !strings.HasPrefix(url, g.url+"/v1/images/content/") ||
		strings.Contains(string(r.body), "secret") {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if r.get("data.0.revised_prompt").Str != "a nicer cat" || r.get("created").Int() != 5 || r.get("usage").Exists() ||
		r.get("size").Exists() {
		t.Errorf("%s", r.body)
	}
	got := g.fetch(url)
	if got.status != 200 || !bytes.Equal(got.body, picture) || got.header.Get("Content-Type") != "image/png" ||
		!strings.Contains(got.header.Get("Cache-Control"),
			"immutable") || got.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d %v", got.status, got.header)
	}
	for asked, want := range map[string]struct {
		status int
		body   string
	}{
		"bytes=0-3": {206, string(picture[:4])}, "bytes=-2": {206, string(picture[len(picture)-2:])},
		"bytes=999999-": {416, ""}, "bytes=5-2": {416, ""}, "bytes=-0": {416, ""},
		"lines=1-2": {200, string(picture)},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Range", asked)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != want.status || want.body != "" && string(body) != want.body ||
			want.status == 416 &&
				(res.Header.Get("Content-Type") != "application/json" ||
					gjson.GetBytes(body, "error.code").Str != "range_not_satisfiable") {
			t.Errorf("Range %s: %d %v %s", asked, res.StatusCode, res.Header, body)
		}
	}
	id, rest, _ := strings.Cut(strings.TrimPrefix(url, g.url+"/v1/images/content/"), ".png")
	for name, wrong := range map[string]string{
		"another signature": url + "A", "no signature": g.url + "/v1/images/content/" + id,
		"another blob":   strings.Replace(url, id[:4], "0000", 1),
		"a later expiry": strings.Replace(url, "expires=1", "expires=2", 1),
		"no such file":   g.url + "/v1/images/content/..%2f..%2fetc" + rest,
	} {
		if got := g.fetch(wrong); got.status != 404 || got.get("error.type").Str != "not_found_error" {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	g.mu.Lock()
	g.later = time.Hour
	g.mu.Unlock()
	if got := g.fetch(url); got.status != 404 || got.get("error.code").Str != "content_not_found" {
		t.Errorf("after an hour: %d %s", got.status, got.body)
	}
}

func TestPicturesAreInlinedForWhoeverAsks(t *testing.T) {
	picture := pngOf(3, 3)
	g := open(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = w.Write(picture)
			return
		}
		fmt.Fprintf(w, `{"created":5,"data":[{"url":"http://%s/files/x"}]}`, r.Host)
	})
	r := g.generate(object{"model": "legacy-image-2", "response_format": "b64_json"})
	if r.get("data.0.b64_json").Str != base64.StdEncoding.EncodeToString(picture) || r.get("data.0.url").Exists() {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestAStreamPassesUntouched(t *testing.T) {
	event := func(kind, more string) string {
		return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\",\"b64_json\":\"" + onePixel +
			"\",\"created_at\":1," + more + "}\n\n"
	}
	events := event("image_generation.partial_image", `"partial_image_index":0,"future":1`) +
		event("image_generation.completed", `"usage":{"total_tokens":3,"input_tokens":1,"output_tokens":2}`)
	g := open(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, events)
	})
	r := g.generate(object{"model": "gen-image-1", "stream": true, "partial_images": 1})
	if r.status != 200 || string(r.body) != events || r.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%d %v %s", r.status, r.header, r.body)
	}
	if got := g.spent(); got != 40_000 {
		t.Errorf("charged %d", got)
	}
}

func TestAStreamOfALatePictureBeginsWithAHeartbeat(t *testing.T) {
	for name, status := range map[string]int{"a picture": 200, "a failure": 400} {
		begun := make(chan struct{})
		g := openBeating(t, time.Millisecond, func(w http.ResponseWriter, r *http.Request) {
			<-begun // the client has the headers before the vendor answers
			if status == 200 {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w,
					`data: {"type":"image_generation.completed","b64_json":"`+onePixel+`"}`+"\n\n")
				return
			}
			w.WriteHeader(status)
		})
		req, _ := http.NewRequestWithContext(t.Context(), "POST", g.url+"/v1/images/generations",
			strings.NewReader(`{"model":"gen-image-1","prompt":"a cat","stream":true}`))
		req.Header.Set("Authorization", "Bearer "+g.secret)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		close(begun)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		last := map[int]string{200: "image_generation.completed", 400: "event: error\n"}[status]
		beats := strings.HasPrefix(string(b), ": keep-alive\n")
		if res.StatusCode != 200 || !beats || !strings.Contains(string(b), last) {
			t.Errorf("%s: %d %s", name, res.StatusCode, b)
		}
	}
}

func TestAStreamThatBreaksEndsInAnError(t *testing.T) {
	for name, tail := range map[string]string{
		"an error": "event: error\ndata: " +
			"{\"error\":{\"message\":\"blocked\",\"type\":\"image_generation_user_error\",\"code\":\"moderation_blocked\",\"param\":null}}\n\n",
		"its end": "",
	} {
		g := open(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"type":"image_generation.partial_image","partial_image_index":0,`+
				`"b64_json":"`+onePixel+`"}`+"\n\n"+tail)
		})
		r := g.generate(object{"model": "gen-image-1", "stream": true, "partial_images": 1})
		_, last, _ := strings.Cut(string(r.body), "event: error\ndata: ")
		if r.status != 200 || !gjson.Get(last, "error.message").Exists() ||
			strings.Contains(string(r.body), "completed") {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
		if got := g.spent(); got != 0 {
			t.Errorf("%s: charged %d", name, got)
		}
	}
}

func TestMoreImagesThanOneCallMakesAreSeveralCalls(t *testing.T) {
	var calls, at, most atomic.Int64
	g := open(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		now := at.Add(1)
		defer at.Add(-1)
		for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
		}
		time.Sleep(20 * time.Millisecond)
		fmt.Fprintf(
			w,
			`{"candidates":[{"content":{"parts":[{"text":"here"},{"inlineData":{"mimeType":"image/png",`+
				`"data":"%s"}}]},"finishReason":"STOP"}],
			"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":7,
			"candidatesTokensDetails":[{"modality":"IMAGE","tokenCount":6}]}}`,
			onePixel,
		)
	})
	r := g.generate(object{"model": "other-image", "n": 10, "size": "1536x1024"})
	if r.status != 200 || len(r.get("data").Array()) != 10 || r.get("usage.total_tokens").Int() != 120 ||
		r.get("usage.output_tokens_details.image_tokens").Int() != 60 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if calls.Load() != 10 || most.Load() > 8 {
		t.Errorf("%d calls, %d at once", calls.Load(), most.Load())
	}
	if got := g.spent(); got != 400_000 {
		t.Errorf("charged %d", got)
	}
}

func TestTheThirdShapeIsAskedForPictures(t *testing.T) {
	var sent []byte
	var path string
	g := open(t, func(w http.ResponseWriter, r *http.Request) {
		sent, _ = io.ReadAll(r.Body)
		path = r.URL.Path
		fmt.Fprintf(w, `{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"%s"}}]}}]}`,
			onePixel)
	})
	picture := pngOf(8, 8)
	r := g.edit(object{"model": "other-image", "prompt": "a hat", "size": "1792x1024", "quality": "high"},
		map[string][]byte{"image": picture})
	if r.status != 200 || r.get("data.0.b64_json").Str != onePixel ||
		r.header.Get("X-Stagedoor-Losses") != "size:nearest,quality" &&
			r.header.Get("X-Stagedoor-Losses") != "quality" {
		t.Fatalf("%d %v %s", r.status, r.header, r.body)
	}
	got := gjson.ParseBytes(sent)
	if path != "/v1beta/models/other-image:generateContent" ||
		got.Get("contents.0.parts.0.inlineData.data").Str != base64.StdEncoding.EncodeToString(picture) ||
		got.Get("contents.0.parts.1.text").Str != "a hat" ||
		got.Get("generationConfig.responseModalities.1").Str != "IMAGE" ||
		got.Get("generationConfig.imageConfig.aspectRatio").Str != "16:9" {
		t.Errorf("%s %s", path, sent)
	}
}

func TestAChatUpstreamIsAskedForPictures(t *testing.T) {
	var sent []byte
	reply := ""
	g := open(t, func(w http.ResponseWriter, r *http.Request) {
		sent, _ = io.ReadAll(r.Body)
		if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer c-secret" {
			t.Errorf("%s %v", r.URL.Path, r.Header)
		}
		_, _ = io.WriteString(w, reply)
	})
	part := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + onePixel + `"}}`
	reply = `{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"here","images":[` + part + `]}}],
		"usage":{"prompt_tokens":7,"completion_tokens":1300,"total_tokens":1307,"completion_tokens_details":{"image_tokens":1290}}}`
	source := pngOf(8, 8)
	r := g.edit(object{"model": "drawing-1", "prompt": "a hat", "size": "1536x1024"},
		map[string][]byte{"image": source})
	if r.status != 200 || r.get("data.0.b64_json").Str != onePixel ||
		r.get("usage.output_tokens_details.image_tokens").Int() != 1290 ||
		r.get("usage.total_tokens").Int() != 1307 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	got := gjson.ParseBytes(sent)
	if got.Get("model").Str != "drawing-1" || got.Get("modalities").Raw != `["image","text"]` ||
		got.Get("image_config.aspect_ratio").Str != "3:2" ||
		got.Get(
			"messages.0.content.0.image_url.url",
		).Str != "data:image/png;base64,"+base64.StdEncoding.EncodeToString(source) ||
		got.Get("messages.0.content.1.text").Str != "a hat" {
		t.Errorf("sent %s", sent)
	}
	paid := g.spent()
	for name, tc := range map[string]struct {
		reply  string
		status int
		code   string
	}{
		"among the parts": {`{"choices":[{"message":{"content":[{"type":"text","text":"here"},` + part + `]}}]}`, 200,
			""},
		"words only": {`{"choices":[{"finish_reason":"stop","message":{"content":"I cannot draw"}}]}`, 502,
			"upstream_invalid_response"},
		"a refusal": {`{"choices":[{"finish_reason":"content_filter","message":{"content":null}}]}`, 400,
			"moderation_blocked"},
		"an error": {`{"error":{"message":"no","type":"invalid_request_error","code":"bad"}}`, 400, "bad"},
		"no base64": {`{"choices":[{"message":{"images":[{"image_url":{"url":"data:image/png;base64,!"}}]}}]}`,
			502, "upstream_invalid_response"},
		"odd types": {`{"choices":[{"message":{"images":{"a":1},"content":[5,null,{"image_url":"x"}]}}]}`, 502,
			"upstream_invalid_response"},
		"no choices": {`[]`, 502, "upstream_invalid_response"},
	} {
		reply = tc.reply
		if r := g.generate(object{"model": "drawing-1"}); r.status != tc.status || r.get("error.code").Str != tc.code {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if got := g.spent(); got != 2*paid || paid == 0 {
		t.Errorf("charged %d and %d", paid, got)
	}
	if r := g.generate(object{"model": "drawing-1", "background": "transparent"}); r.status != 400 ||
		r.get("error.param").Str != "background" {
		t.Errorf("a transparent background: %d %s", r.status, r.body)
	}
}

// One picture of several that fails is the failure of all, and costs nothing.
func TestAllOrNothing(t *testing.T) {
	var calls atomic.Int64
	g := open(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 2 {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}`)
			return
		}
		fmt.Fprintf(w, `{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"%s"}}]}}]}`,
			onePixel)
	})
	r := g.generate(object{"model": "other-image", "n": 3})
	if r.status != 400 || r.get("data").Exists() || g.spent() != 0 {
		t.Errorf("%d %s, charged %d", r.status, r.body, g.spent())
	}
}

func TestRefusalsOfTheUpstream(t *testing.T) {
	for name, tc := range map[string]struct {
		status       int
		body         string
		want         int
		kind, code   string
		calls        int64
		more, absent string
	}{
		"moderation": {400, `{"error":{"message":"no","type":"image_generation_user_error","param":null,"code":"moderation_blocked","moderation_details":{"moderation_stage":"input","categories":["violence","x y"],"secret":1}}}`,
			400, "image_generation_user_error", "moderation_blocked", 1,
			`"moderation_details":{"moderation_stage":"input","categories":["violence"]}`, "secret"},
		"a bad value": {400, `{"error":{"message":"bad size","type":"invalid_request_error","param":"size","code":"invalid_value"}}`, 400, "invalid_request_error", "invalid_value", 1, `"param":"size"`, "moderation_details"},
		"the key": {401, `{"error":{"message":"Incorrect API key provided: sk-upstream-secret"}}`, 502,
			"api_error", "upstream_auth_error", 1, "", "sk-upstream"},
		"a rate": {429, `{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`, 429,
			"requests", "rate_limit_exceeded", 1, "", ""},
		"a failure": {500, `{"error":{"message":"oops","type":"server_error"}}`, 500, "server_error", "", 3, "",
			""},
		"not JSON":    {502, `<html>secret</html>`, 502, "api_error", "", 1, "", "secret"},
		"no JSON":     {200, `hello`, 502, "api_error", "upstream_invalid_response", 1, "", "hello"},
		"no pictures": {200, `{"created":1,"data":[]}`, 502, "api_error", "upstream_invalid_response", 1, "", ""},
		"no base64": {200, `{"created":1,"data":[{"b64_json":"!!!!"}]}`, 502, "api_error",
			"upstream_invalid_response", 1, "", ""},
		"error in body": {200, `{"error":{"message":"no","type":"image_generation_user_error","code":"moderation_blocked"}}`, 400, "image_generation_user_error", "moderation_blocked", 1, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			g := open(t, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				answer(tc.status, tc.body)(w, r)
			})
			r := g.generate(object{"model": "gen-image-1"})
			text := string(r.body)
			if r.status != tc.want || r.get("error.type").Str != tc.kind || r.get("error.code").Str != tc.code ||
				!strings.Contains(text, tc.more) || tc.absent != "" && strings.Contains(text, tc.absent) {
				t.Errorf("%d %s", r.status, text)
			}
			if calls.Load() != tc.calls {
				t.Errorf("%d calls", calls.Load())
			}
			if got := g.spent(); got != 0 {
				t.Errorf("charged %d", got)
			}
		})
	}
}

func TestWhatIsRefusedCostsNothing(t *testing.T) {
	g := open(t, func(http.ResponseWriter, *http.Request) { t.Error("the upstream was asked") })
	for name, tc := range map[string]struct {
		with   object
		status int
		code   string
	}{
		"a rule":         {object{"model": "gen-image-1", "n": 11}, 400, "invalid_value"},
		"another model":  {object{"model": "no-such-model"}, 404, "model_not_found"},
		"a text model":   {object{"model": "text-1"}, 400, "invalid_value"},
		"a mask or none": {object{"model": "other-image", "background": "transparent"}, 400, "unsupported_parameter"},
	} {
		r := g.generate(tc.with)
		if r.status != tc.status || r.get("error.code").Str != tc.code {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	g.secret = "sd-narrow"
	if r := g.generate(object{"model": "gen-image-1"}); r.status != 403 {
		t.Errorf("without the scope: %d %s", r.status, r.body)
	}
	g.secret = "sd-unknown"
	if r := g.generate(object{"model": "gen-image-1"}); r.status != 401 {
		t.Errorf("without a key: %d %s", r.status, r.body)
	}
	if g.spent() != 0 {
		t.Errorf("charged %d", g.spent())
	}
}

func TestABalanceThatIsTooSmallAsksNobody(t *testing.T) {
	g := open(t, func(http.ResponseWriter, *http.Request) { t.Error("the upstream was asked") })
	if err := g.runtime.Ledger().Adjust(t.Context(), "7", 39_999-credits, "test"); err != nil {
		t.Fatal(err)
	}
	r := g.generate(object{"model": "gen-image-1"})
	if r.status != 429 || r.get("error.code").Str != "insufficient_quota" || r.header.Get("X-Should-Retry") != "false" {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// A client that leaves takes its upstream call along.
func TestALeavingClientCancelsItsCall(t *testing.T) {
	asked, left := make(chan struct{}), make(chan struct{})
	g := open(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(asked)
		<-r.Context().Done()
		close(left)
	})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := g.do(ctx, "POST", g.url+"/v1/images/generations", "application/json",
			strings.NewReader(`{"prompt":"a cat","model":"gen-image-1"}`))
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	<-asked
	cancel()
	select {
	case <-left:
	case <-time.After(time.Minute):
		t.Fatal("the upstream was not cancelled")
	}
	wg.Wait()
	if got := g.spent(); got != 0 {
		t.Errorf("charged %d", got)
	}
}

func TestAFullStoreIsSaidSo(t *testing.T) {
	big := make([]byte, 2<<20)
	copy(big, pngOf(1, 1))
	g := open(t, answer(200, `{"created":1,"data":[{"b64_json":"`+base64.StdEncoding.EncodeToString(big)+`"}]}`))
	r := g.generate(object{"model": "legacy-image-2"})
	if r.status != 503 || r.get("error.code").Str != "storage_full" || g.spent() != 0 || g.blobs.Used() != 0 {
		t.Errorf("%d %s, charged %d", r.status, r.body, g.spent())
	}
}

// TestNamesInOtherLettersAreRefused sends names that fold to known ones as members, as fields of a form and in
// the JSON of a field.
func TestNamesInOtherLettersAreRefused(t *testing.T) {
	g := open(t, func(http.ResponseWriter, *http.Request) { t.Error("the upstream was asked") })
	form := func(name, value string) (contentType, body string) {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		if err := errors.Join(w.WriteField(name, value), w.Close()); err != nil {
			t.Fatal(err)
		}
		return w.FormDataContentType(), b.String()
	}
	for _, tc := range []struct{ path, name, value, param string }{
		{"/v1/images/generations", "", `{"prompt":"a","Model":"x"}`, "Model"},
		{"/v1/images/edits", "", `{"prompt":"a","images":[{"Image_URL":"x"}]}`, "images.0.Image_URL"},
		{"/v1/images/edits", "Model", "x", "Model"},
		{"/v1/images/edits", "qual\u0130ty", "x", ""}, // folds to nothing
		{"/imagegen/generate", "", `{"image_request":{"Prompt":"a"}}`, "image_request.Prompt"},
		{"/imagegen/remix", "image_request", `{"prompt":"a","Model":"V_2"}`, "image_request.Model"},
		{"/imagegen/v1/imagegen-v3/generate", "Rendering_Speed", "TURBO", "Rendering_Speed"},
		{"/v1/videos", "", `{"prompt":"a","Seconds":"20"}`, "Seconds"},
		{"/v1/videos", "Seconds", "20", "Seconds"},
		{"/v1/videos", "input_reference[Image_url]", "x", "input_reference[Image_url]"},
		{"/v1/videos/edits", "video", `{"ID":"x"}`, "video.ID"},
	} {
		contentType, body := asJSON, tc.value
		if tc.name != "" {
			contentType, body = form(tc.name, tc.value)
		}
		r := g.send("POST", tc.path, contentType, body)
		misspelled := r.get("error.code").Str == "misspelled_name"
		if r.status != 400 || misspelled != (tc.param != "") || misspelled && r.get("error.param").Str != tc.param {
			t.Errorf("%s %s %s: %d %s", tc.path, tc.name, tc.value, r.status, r.body)
		}
	}
	if g.spent() != 0 {
		t.Errorf("charged %d", g.spent())
	}
}

func TestNamesThatOccurTwiceAreRefused(t *testing.T) {
	g := open(t, func(http.ResponseWriter, *http.Request) { t.Error("the upstream was asked") })
	const twice = `{"prompt":"a","image_request":{},"image_request":{}}`
	for _, path := range []string{"/v1/images/generations", "/v1/images/edits", "/imagegen/generate", "/v1/videos"} {
		g.refused(g.send("POST", path, asJSON, twice), 400, "duplicate_key", "image_request")
	}
	g.refused(g.send("POST", "/imagegen/generate", asJSON, `{"image_request":{"prompt":"a","prompt":"b"}}`), 400,
		"duplicate_key", "image_request.prompt")
}

// TestModelNamesOfPicturesAndVideosAreShort: a model's name is kept in the ledger, in metrics and in logs.
func TestModelNamesOfPicturesAndVideosAreShort(t *testing.T) {
	g := open(t, func(http.ResponseWriter, *http.Request) { t.Error("the upstream was asked") })
	for _, path := range []string{"/v1/images/generations", "/v1/videos"} {
		for length, long := range map[int]bool{dialogue.MaxName: false, dialogue.MaxName + 1: true, 200 << 10: true} {
			r := g.send("POST", path, asJSON, `{"prompt":"a","model":"`+strings.Repeat("m", length)+`"}`)
			refused := r.status == 400 && r.get("error.param").Str == "model" &&
				r.get("error.code").Str == "invalid_value"
			if refused != long || strings.Contains(string(r.body), strings.Repeat("m", dialogue.MaxName+1)) {
				t.Errorf("%s with a name of %d characters: %d %.400s", path, length, r.status, r.body)
			}
		}
	}
}

// edit sends a form.
func (g *gateway) edit(fields object, files map[string][]byte) *reply {
	g.t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for name, value := range fields {
		if err := form.WriteField(name, fmt.Sprint(value)); err != nil {
			g.t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) { // image[], image[]2, mask
		w, err := form.CreateFormFile(strings.TrimRight(name, "0123456789"), "x.png")
		if err == nil {
			_, err = w.Write(files[name])
		}
		if err != nil {
			g.t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		g.t.Fatal(err)
	}
	r, err := g.do(g.t.Context(), "POST", g.url+"/v1/images/edits", form.FormDataContentType(), &b)
	if err != nil {
		g.t.Fatal(err)
	}
	return r
}

func TestEditsArriveAsForms(t *testing.T) {
	first, second, mask := pngOf(8, 8), pngOf(700, 500), pngOf(8, 8)
	var form *multipart.Form
	g := open(t, func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(8 << 20); err != nil {
			t.Error(err)
		}
		form = r.MultipartForm
		_, _ = io.WriteString(w, made(1))
	})
	r := g.edit(object{"prompt": "a hat", "n": 1, "input_fidelity": "high", "future": "yes"},
		map[string][]byte{"image[]": first, "image[]2": second, "mask": mask})
	if r.status != 200 || string(r.body) != made(1) {
		t.Fatalf("%d %s", r.status, r.body)
	}
	value := func(name string) string { return strings.Join(form.Value[name], ",") }
	if value("model") != "gpt-image-1.5" || value("prompt") != "a hat" || value("input_fidelity") != "high" ||
		value("future") != "yes" {
		t.Errorf("sent %v", form.Value)
	}
	if len(form.File["image[]"]) != 2 || len(form.File["mask"]) != 1 {
		t.Errorf("sent %v", form.File)
	}
}

func TestEditsMayBeJSON(t *testing.T) {
	var sent []byte
	g := open(t, func(w http.ResponseWriter, r *http.Request) {
		sent, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, made(1))
	})
	body := `{"model":"gen-image-1","prompt":"a hat","images":[{"image_url":"data:image/png;base64,` + onePixel + `"}]}`
	r, err := g.do(t.Context(), "POST", g.url+"/v1/images/edits", "application/json", strings.NewReader(body))
	if err != nil || r.status != 200 || string(sent) != strings.Replace(body, "gen-image-1", "gpt-image-1", 1) {
		t.Errorf("%+v %v, sent %s", r, err, sent)
	}
}

func TestUploadsThatAreRefused(t *testing.T) {
	g := open(t, func(http.ResponseWriter, *http.Request) { t.Error("the upstream was asked") })
	for name, tc := range map[string]struct {
		files  map[string][]byte
		status int
		param  string
	}{
		"no picture": {map[string][]byte{"image": []byte("GIF89a")}, 400, "image"},
		"an SVG":     {map[string][]byte{"image": []byte("<svg/>")}, 400, "image"},
		"a page":     {map[string][]byte{"image": bytes.Repeat([]byte("<html>"), 1<<17)}, 400, "image"},
		"cut off":    {map[string][]byte{"image": pngOf(8, 8)[:20]}, 400, "image"},
		"too large": {map[string][]byte{"image": pngOf(8, 8),
			"mask": append(pngOf(8, 8), make([]byte, 4<<20)...)}, 413, "mask"},
		"no mask's place": {map[string][]byte{"picture": pngOf(8, 8)}, 400, "picture"},
		"another size":    {map[string][]byte{"image": pngOf(8, 8), "mask": pngOf(8, 9)}, 400, "mask"},
	} {
		r := g.edit(object{"prompt": "a hat"}, tc.files)
		if r.status != tc.status || r.get("error.param").Str != tc.param {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	for contentType, status := range map[string]int{"text/plain": 415, "multipart/form-data": 415,
		"multipart/form-data; boundary=x": 400} {
		r, err := g.do(t.Context(), "POST", g.url+"/v1/images/edits", contentType, strings.NewReader("nothing"))
		if err != nil || r.status != status {
			t.Errorf("%s: %+v, %v", contentType, r, err)
		}
	}
}

// Routes that take forms and JSON name both in the error of a body that is neither.
func TestRoutesOfFormsAndJSONNameBoth(t *testing.T) {
	g := open(t, func(http.ResponseWriter, *http.Request) { t.Error("the upstream was asked") })
	for _, path := range []string{"/v1/images/edits", "/imagegen/v1/imagegen-v3/generate", "/v1/videos",
		"/v1/videos/video_1/remix", "/v1/videos/edits", "/v1/videos/extensions"} {
		for _, contentType := range []string{"text/plain", "multipart/form-data", "text/html, */*"} {
			r, err := g.do(t.Context(), "POST", g.url+path, contentType, strings.NewReader("nothing"))
			if err != nil {
				t.Fatal(err)
			}
			g.refused(r, 415, "unsupported_media_type", "")
			if text := r.get("error.message").Str; !strings.Contains(text, "application/json") ||
				!strings.Contains(text, "multipart/form-data") {
				t.Errorf("%s, %s: %s", path, contentType, text)
			}
		}
		for _, contentType := range []string{"", "application/json", "application/scim+json; charset=utf-8"} {
			r, err := g.do(t.Context(), "POST", g.url+path, contentType, strings.NewReader("nothing"))
			if err != nil {
				t.Fatal(err)
			}
			g.refused(r, 400, "invalid_json", "")
		}
	}
}

func TestTheSandboxPaints(t *testing.T) {
	g := open(t, func(http.ResponseWriter, *http.Request) { t.Error("the upstream was asked") })
	r := g.generate(object{"model": "sandbox-1", "n": 2, "size": "512x512", "response_format": "url"})
	if r.status != 200 || len(r.get("data").Array()) != 2 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	got := g.fetch(r.get("data.1.url").Str)
	if c, err := png.DecodeConfig(bytes.NewReader(got.body)); err != nil || c.Width != 512 || c.Height != 512 {
		t.Errorf("%+v, %v", c, err)
	}
	if g.spent() != 80_000 {
		t.Errorf("charged %d", g.spent())
	}
}

// TestRepeatedRequestForPicturesIsNotMadeAgain: as JSON and as a form, whose boundary differs each time. A form with
// another picture is another request.
func TestRepeatedRequestForPicturesIsNotMadeAgain(t *testing.T) {
	calls := 0
	g := open(t, func(w http.ResponseWriter, r *http.Request) {
		calls++
		_, _ = io.WriteString(w, made(1))
	})
	g.once = "json"
	ask := object{"model": "gen-image-1"}
	first, second := g.generate(ask), g.generate(ask)
	if first.status != 200 || !bytes.Equal(first.body, second.body) || second.header.Get("Idempotent-Replayed") == "" {
		t.Errorf("got %d %v %s", second.status, second.header, second.body)
	}
	g.once = "form"
	for range 2 {
		r := g.edit(object{"prompt": "a hat"}, map[string][]byte{"image[]": pngOf(8, 8)})
		if r.status != 200 {
			t.Errorf("got %d %s", r.status, r.body)
		}
	}
	r := g.edit(object{"prompt": "a hat"}, map[string][]byte{"image[]": pngOf(9, 8)})
	if r.status != 409 || r.get("error.code").Str != "idempotency_key_reused" || calls != 2 {
		t.Errorf("another picture: %d %s after %d calls", r.status, r.body, calls)
	}
	if spent := g.spent(); spent != 80_000 {
		t.Errorf("charged %d", spent)
	}
}
