package imagegen

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"image/color"
	"image/png"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"stagedoor/test/harness"
)

const v3 = "/imagegen/v1/imagegen-v3/"

var (
	pic   = picture(40, 30, 0, nil)
	black = picture(40, 30, 600, color.White)
)

// asks is one good request for every route with a form.
var asks = map[string][]part{
	"/imagegen/edit": {
		{name: "image_file", file: pic},
		{name: "mask", file: black},
		{name: "prompt", text: "a hat"},
		{name: "model", text: "V_2"},
	},
	"/imagegen/remix": {
		{name: "image_request", text: `{"prompt":"a hat","image_weight":70}`},
		{name: "image_file", file: pic},
	},
	"/imagegen/reframe": {
		{name: "image_file", file: pic},
		{name: "resolution", text: "1024x768"},
		{name: "model", text: "V_2"},
	},
	"/imagegen/describe": {{name: "image_file", file: pic}},
	"/imagegen/upscale":  {{name: "image_request", text: `{"resemblance":60}`}, {name: "image_file", file: pic}},
	v3 + "generate": {
		{name: "prompt", text: "a cat"},
		{name: "style_reference_images", file: pic},
		{name: "style_reference_images", file: black},
		{name: "num_images", text: "2"},
	},
	v3 + "remix": {{name: "prompt", text: "a cat"}, {name: "image", file: pic}},
	v3 + "edit": {
		{name: "prompt", text: "a cat"},
		{name: "image", file: pic},
		{name: "mask", file: black},
	},
	v3 + "replace-background": {{name: "prompt", text: "a beach"}, {name: "image", file: pic}},
	v3 + "reframe":            {{name: "image", file: pic}, {name: "resolution", text: "1024x768"}},
}

// seen returns the form fields that the vendor reads of each.
func seen() map[string]string {
	file := func(name string, b []byte) string { return fmt.Sprintf(" %s=%d bytes of image/png", name, len(b)) }
	return map[string]string{
		"/imagegen/edit": "/edit prompt=a hat model=V_2 num_images=1" + file("image_file", pic) + file("mask", black),
		"/imagegen/remix": `/remix image_request={"prompt":"a hat","model":"V_2","image_weight":70,"num_images":1}` +
			file("image_file", pic),
		"/imagegen/reframe": "/reframe resolution=RESOLUTION_1024_768 model=V_2 num_images=1" +
			file("image_file", pic),
		"/imagegen/describe": "/describe" + file("image_file", pic),
		"/imagegen/upscale":  `/upscale image_request={"resemblance":60,"num_images":1}` + file("image_file", pic),
		v3 + "generate": "/v1/ideogram-v3/generate prompt=a cat num_images=2" +
			file("style_reference_images", pic) + file("style_reference_images", black),
		v3 + "remix": "/v1/ideogram-v3/remix prompt=a cat num_images=1" + file("image", pic),
		v3 + "edit": "/v1/ideogram-v3/edit prompt=a cat num_images=1" + file("image", pic) +
			file("mask", black),
		v3 + "replace-background": "/v1/ideogram-v3/replace-background prompt=a beach num_images=1" +
			file("image", pic),
		v3 + "reframe": "/v1/ideogram-v3/reframe resolution=1024x768 num_images=1" + file("image", pic),
	}
}

// fetched reads a picture from the address that a client was given, without a key.
func fetched(t *testing.T, g *harness.Gateway, address string) {
	t.Helper()
	if !strings.HasPrefix(address, g.URL+"/") {
		t.Fatalf("%s is not the gateway's own address", address)
	}
	reply, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	m, err := png.Decode(reply.Body)
	if err != nil || reply.Header.Get("Content-Type") != "image/png" || m.Bounds().Empty() {
		t.Errorf("%s gave %s, %v", address, reply.Header.Get("Content-Type"), err)
	}
}

func TestEveryRouteIsServedByTheFirstVendor(t *testing.T) {
	v := newVendor(t)
	g := start(t, v, nil)
	want := seen()
	for _, path := range sorted(asks) {
		a := postForm(t, g, path, asks[path]...)
		if a.status != http.StatusOK {
			t.Errorf("%s: %d %s", path, a.status, a.body)
			continue
		}
		if got := v.asked(); len(got) != 1 || got[0] != want[path] {
			t.Errorf("%s: the vendor saw %q, want %q", path, got, want[path])
		}
		if path == "/imagegen/describe" {
			if len(a.Descriptions) != 1 || a.Descriptions[0].Text != "a grey picture" {
				t.Errorf("%s: %s", path, a.body)
			}
			continue
		}
		if n := strings.Count(want[path], "num_images=2") + 1; len(a.Data) != n {
			t.Errorf("%s: %d images, want %d", path, len(a.Data), n)
			continue
		}
		d := a.Data[0]
		if a.Created != "2025-01-02T03:04:05.678901+00:00" || d.Prompt != "a final prompt" ||
			d.Resolution != "1280x704" ||
			!d.Safe ||
			*d.Seed != 7 ||
			d.Style != "GENERAL" {
			t.Errorf("%s: %s", path, a.body)
		}
		fetched(t, g, *d.URL)
		if a.header.Get("X-Stagedoor-Losses") != "" {
			t.Errorf("%s: lost %s on the way to its own vendor", path, a.header.Get("X-Stagedoor-Losses"))
		}
	}
	for _, key := range v.keys {
		if key != "vendor-key-123" {
			t.Errorf("the vendor got the key %q", key)
		}
	}
}

// A client's own JSON reaches the vendor byte for byte.
func TestDocumentsPassUntouched(t *testing.T) {
	v := newVendor(t)
	g := start(t, v, nil)
	for path, body := range map[string]string{
		"/imagegen/generate": `{ "image_request": {"prompt":"a \u0063at", "seed": 5, "new_field":[1, 2]} , "x":null}`,
		v3 + "generate":      `{"prompt":"a cat",  "style_codes":["0a1b2c3d"], "new_field":{}}`,
	} {
		if a := postJSON(t, g, path, body); a.status != http.StatusOK {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
		if got := v.asked(); len(got) != 1 || !strings.HasSuffix(got[0], " "+body) {
			t.Errorf("%s: the vendor saw %q, want %q", path, got, body)
		}
	}
}

func TestOtherVendorPathsAreNotThere(t *testing.T) {
	v := newVendor(t)
	g := start(t, v, nil)
	for _, path := range []string{"/imagegen", "/imagegen/", "/imagegen/models", "/imagegen/magic-prompt", "/imagegen/datasets", "/imagegen/manage/api/subscription",
		v3 + "generate-transparent", v3 + "inpaint", v3 + "layerize-text", "/imagegen/v1/imagegen-v4/generate",
		"/imagegen/v1/imagegen-v3", "/ideogram/generate"} {
		if a := postJSON(t, g, path, `{}`); a.status != http.StatusNotFound || a.Error == nil {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	reply, err := http.Get(g.URL + "/imagegen/generate")
	if err != nil {
		t.Fatal(err)
	}
	reply.Body.Close()
	if reply.StatusCode != http.StatusMethodNotAllowed || reply.Header.Get("Allow") != "POST" {
		t.Errorf("GET: %d, Allow %q", reply.StatusCode, reply.Header.Get("Allow"))
	}
}

// headerOnly is a PNG that says how large it is and holds nothing.
func headerOnly(width, height uint32) []byte {
	head := []byte{'I', 'H', 'D', 'R', byte(width >> 24), byte(width >> 16), byte(width >> 8), byte(width),
		byte(height >> 24), byte(height >> 16), byte(height >> 8), byte(height), 8, 0, 0, 0, 0}
	sum := crc32.ChecksumIEEE(head)
	b := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), head...)
	return append(b, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
}

// What breaks a rule is refused before the vendor hears of it, with the field's
// name. That each rule is looked at is tested where they are written down.
func TestRulesAreToldBeforeAnythingIsSpent(t *testing.T) {
	v := newVendor(t)
	g := start(t, v, nil)
	with := func(path, name string, p part) *answer {
		var parts []part
		for _, have := range asks[path] {
			if have.name != name {
				parts = append(parts, have)
			}
		}
		if p.name != "" {
			parts = append(parts, p)
		}
		return postForm(t, g, path, parts...)
	}
	mask := func(path string, m []byte) *answer { return with(path, "mask", part{name: "mask", file: m}) }
	large := append(bytes.Clone(pic), make([]byte, 10<<20)...)
	for name, tt := range map[string]struct {
		a           *answer
		status      int
		param, says string
	}{
		"no prompt":            {with(v3+"generate", "prompt", part{}), 400, "prompt", "is required"},
		"speed":                {with(v3+"generate", "", part{name: "rendering_speed", text: "FLASH"}), 400, "rendering_speed", "TURBO, DEFAULT, QUALITY"},
		"document":             {with("/imagegen/remix", "image_request", part{name: "image_request", text: "{"}), 400, "image_request", "not valid JSON"},
		"in the document":      {with("/imagegen/remix", "image_request", part{name: "image_request", text: `{"prompt":"a","image_weight":0}`}), 400, "image_request.image_weight", "between 1 and 100"},
		"model":                {with("/imagegen/edit", "model", part{name: "model", text: "V_2A"}), 400, "model", "V_2, V_2_TURBO"},
		"no picture":           {with(v3+"remix", "image", part{name: "image", file: []byte("GIF89a not what is wanted here")}), 400, "image", "PNG, JPEG or WebP"},
		"large picture":        {with(v3+"remix", "image", part{name: "image", file: large}), 413, "image", "10 MiB"},
		"mask of other size":   {mask("/imagegen/edit", picture(30, 40, 600, color.White)), 400, "mask", "dimensions of the image, 40x30"},
		"white mask":           {mask("/imagegen/edit", picture(40, 30, 0, color.White)), 400, "mask", "pure white"},
		"nearly white mask":    {mask("/imagegen/edit", picture(40, 30, 119, color.White)), 400, "mask", "10%"},
		"grey mask":            {mask("/imagegen/edit", picture(40, 30, 600, nil)), 400, "mask", "black and white"},
		"grey mask of V3":      {mask(v3+"edit", picture(40, 30, 600, nil)), 400, "mask", "black and white"},
		"100,000 pixels wide":  {mask("/imagegen/edit", headerOnly(100_000, 30)), 400, "mask", "dimensions"},
		"mask that lies":       {mask("/imagegen/edit", headerOnly(40, 30)), 400, "mask", "damaged"},
		"JSON for a form":      {postJSON(t, g, "/imagegen/edit", `{}`), 415, "", "multipart/form-data"},
		"a form for JSON":      {postForm(t, g, "/imagegen/generate", part{name: "prompt", text: "x"}), 415, "", "application/json"},
		"no document":          {postJSON(t, g, "/imagegen/generate", `{"prompt":"a"}`), 400, "image_request", "is required"},
		"broken JSON":          {postJSON(t, g, "/imagegen/generate", `{"image_request":`), 400, "", "valid JSON"},
		"a form without parts": {post(t, g, v3+"generate", []byte("--x--\r\n"), "multipart/form-data; boundary=x"), 400, "prompt", "is required"},
		"no form":              {post(t, g, v3+"generate", []byte("hello"), "multipart/form-data; boundary=x"), 400, "", "multipart/form-data"},
	} {
		e := tt.a.Error
		if e == nil || tt.a.status != tt.status || e.Param != tt.param || !strings.Contains(e.Message, tt.says) ||
			tt.status == 400 && e.Type != "invalid_request_error" {
			t.Errorf("%s: got %d %s, want %d for %q that says %q", name, tt.a.status, tt.a.body, tt.status, tt.param,
				tt.says)
		}
		var keys struct{ Error map[string]json.RawMessage }
		if json.Unmarshal(tt.a.body, &keys); len(keys.Error) != 4 {
			t.Errorf("%s: the envelope has %d keys, want all four: %s", name, len(keys.Error), tt.a.body)
		}
	}
	if got := v.asked(); len(got) != 0 {
		t.Errorf("the vendor was asked %q", got)
	}
}

// Both of a mask and its picture may say that they are huge, and cost nothing.
func TestTwoLyingHeadersAreRefused(t *testing.T) {
	g := start(t, newVendor(t), nil)
	liar := headerOnly(100_000, 100_000)
	a := postForm(t, g, v3+"edit", part{name: "prompt", text: "x"}, part{name: "image", file: liar},
		part{name: "mask", file: liar})
	if a.status != 400 || a.Error.Param != "mask" || !strings.Contains(a.Error.Message, "too many pixels") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestVendorsRefusalsComeInTheOneEnvelope(t *testing.T) {
	v := newVendor(t)
	g := start(t, v, nil)
	for _, tt := range []struct {
		status      int
		reply       string
		want        int
		code, param string
		calls       int
	}{
		{422, `{"error":"Prompt provided failed safety check"}`, 422, "content_policy_violation", "", 1},
		{400, ``, 400, "", "", 1},
		{401, `{"error":"bad key vendor-key-123"}`, 502, "upstream_auth_error", "", 1},
		{403, `{}`, 502, "upstream_auth_error", "", 1},
		{429, `{}`, 429, "rate_limit_exceeded", "", 1},
		{500, `<html>vendor.internal</html>`, 500, "", "", 1},
		{200, `not json`, 502, "upstream_invalid_response", "", 1},
		{200, `{"data":[]}`, 502, "upstream_invalid_response", "", 1},
	} {
		v.answer(tt.status, tt.reply)
		if tt.reply == "" {
			v.answer(tt.status, " ")
		}
		a := postJSON(t, g, "/imagegen/generate", `{"image_request":{"prompt":"a"}}`)
		if a.Error == nil || a.status != tt.want || a.Error.Code != tt.code {
			t.Errorf("%d: got %d %s, want %d %s", tt.status, a.status, a.body, tt.want, tt.code)
		}
		if bytes.Contains(a.body, []byte("vendor")) {
			t.Errorf("%d: tells of the vendor: %s", tt.status, a.body)
		}
		if got := v.asked(); len(got) != tt.calls {
			t.Errorf("%d: %d calls, want %d", tt.status, len(got), tt.calls)
		}
	}
	reply, err := http.Post(g.URL+"/imagegen/generate", "application/json", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	reply.Body.Close()
	if reply.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a key: %d", reply.StatusCode)
	}
}

const (
	safe   = `{"prompt":"a","resolution":"1280x704","is_image_safe":true,"seed":7,"url":"PICTURE"}`
	unsafe = `{"prompt":"a","resolution":"1280x704","is_image_safe":false,"seed":8,"url":null}`
)

// The third generation is charged by its speed, the others by what the catalogue
// says, and each image that was delivered counts.
func TestChargesBySpeedAndByImagesDelivered(t *testing.T) {
	v := newVendor(t)
	g := start(t, v, func(c *harness.Config) {
		paid(t, c, 1_000_000)
		c.Models = map[string]harness.Model{
			"V_2": {
				Targets: []harness.Target{{Provider: "vendor", Model: "V_2"}},
				Price:   &harness.Price{PerImage: 0.08},
			},
		}
	})
	ask := func(speed string, n int) *answer {
		return postJSON(t, g, v3+"generate",
			fmt.Sprintf(`{"prompt":"a","rendering_speed":"%s","num_images":%d}`, speed, n))
	}
	for _, tt := range []struct {
		name          string
		reply         string
		ask           func() *answer
		charged, held int64
		images        int64
	}{
		{"TURBO", "", func() *answer { return ask("TURBO", 1) }, 30_000, 30_000, 1},
		{"DEFAULT", "", func() *answer { return ask("DEFAULT", 1) }, 60_000, 60_000, 1},
		{"QUALITY", "", func() *answer { return ask("QUALITY", 2) }, 180_000, 180_000, 2},
		{"no speed", "", func() *answer { return postForm(t, g, v3+"edit", asks[v3+"edit"]...) }, 60_000, 60_000, 1},
		{"one of two is unsafe", `{"data":[` + safe + `,` + unsafe + `]}`, func() *answer { return ask("TURBO", 2) },
			30_000, 60_000, 1},
		{"all are unsafe", `{"data":[` + unsafe + `]}`, func() *answer { return ask("QUALITY", 1) }, 0, 90_000, 0},
		{"V_2", "", func() *answer {
			return postJSON(t, g, "/imagegen/generate", `{"image_request":{"prompt":"a","num_images":3}}`)
		}, 240_000, 240_000, 3},
	} {
		v.answer(0, tt.reply)
		a := tt.ask()
		if a.status != http.StatusOK {
			t.Errorf("%s: %d %s", tt.name, a.status, a.body)
			continue
		}
		if charged, held, images := receipt(t, g, a); charged != tt.charged || held < tt.held || images != tt.images {
			t.Errorf("%s: charged %d of %d held for %d images, want %d of %d for %d", tt.name, charged, held, images,
				tt.charged, tt.held, tt.images)
		}
		for _, d := range a.Data {
			if d.Safe != (d.URL != nil) {
				t.Errorf("%s: %s", tt.name, a.body)
			}
		}
	}
	v.answer(422, `{"error":"unsafe"}`)
	if charged, _, _ := receipt(t, g, ask("QUALITY", 1)); charged != 0 {
		t.Errorf("a refusal was charged %d", charged)
	}
	v.answer(0, "")
	v.asked()
	// 1,000,000 less 600,000 is left: eight of the best cost 720,000.
	a := ask("QUALITY", 8)
	if a.status != http.StatusTooManyRequests || a.Error.Code != "insufficient_quota" ||
		a.header.Get("X-Should-Retry") != "false" {
		t.Errorf("out of balance: %d %s", a.status, a.body)
	}
	if got := v.asked(); len(got) != 0 {
		t.Errorf("the vendor was asked %q although the balance is too small", got)
	}
}

// A model of these routes may be served by another kind of provider, and a model
// of the images routes by this one.
func TestModelsAreServedByOtherKindsOfProviders(t *testing.T) {
	v := newVendor(t)
	var got string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.URL.Path + " " + r.Header.Get("Authorization") + " " + string(body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"created":1,"data":[{"b64_json":"%s"}]}`, b64(pic))
	}))
	defer other.Close()
	g := start(t, v, func(c *harness.Config) {
		c.Providers["other"] = harness.Provider{Shape: "images", BaseURL: other.URL + "/v1", APIKeys: []string{"k"}}
		c.Providers["text"] = harness.Provider{Shape: "chat", BaseURL: other.URL}
		c.Models = map[string]harness.Model{
			"V_2A":        {Targets: []harness.Target{{Provider: "other", Model: "gpt-image-1"}}},
			"gen-image-1": {Targets: []harness.Target{{Provider: "vendor", Model: "imagegen-v3"}}},
			"*":           {Targets: []harness.Target{{Provider: "text", Model: "*"}}}, // makes no pictures
		}
	})
	a := postJSON(t, g, "/imagegen/generate",
		`{"image_request":{"prompt":"a cat","model":"V_2A","seed":3,"aspect_ratio":"ASPECT_1_1"}}`)
	if a.status != http.StatusOK || len(a.Data) != 1 || a.Data[0].Prompt != "a cat" ||
		a.Data[0].Resolution != "40x30" ||
		*a.Data[0].Seed != 3 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	fetched(t, g, *a.Data[0].URL)
	if !strings.HasPrefix(got, "/v1/images/generations Bearer k ") || !strings.Contains(got, `"model":"gpt-image-1"`) ||
		!strings.Contains(a.header.Get("X-Stagedoor-Losses"), "seed") {
		t.Errorf("the other provider saw %s, lost %s", got, a.header.Get("X-Stagedoor-Losses"))
	}
	if a := postJSON(t, g, "/imagegen/generate", `{"image_request":{"prompt":"a cat"}}`); a.status != http.StatusOK ||
		len(v.asked()) != 1 {
		t.Errorf("a pattern for text kept the vendor from serving V_2: %d %s", a.status, a.body)
	}
	b := postJSON(t, g, "/v1/images/generations",
		`{"model":"gen-image-1","prompt":"a dog","size":"1536x1024","quality":"high","background":"transparent"}`)
	if calls := v.asked(); b.status != http.StatusOK || len(calls) != 1 ||
		calls[0] != "/v1/ideogram-v3/generate prompt=a dog aspect_ratio=3x2 rendering_speed=QUALITY num_images=1" {
		t.Errorf("%d %.300s: the vendor saw %q", b.status, b.body, calls)
	}
	if lost := b.header.Get("X-Stagedoor-Losses"); lost != "background,size" {
		t.Errorf("lost %q", lost)
	}
}

// A refusal by moderation has the status and the code of the client's shape and model, whichever provider refused.
func TestRefusalsByModerationHaveTheFormOfTheClient(t *testing.T) {
	v := newVendor(t)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"error":{"message":"no","type":"image_generation_user_error","param":null,`+
			`"code":"moderation_blocked","moderation_details":{"moderation_stage":"input","categories":["violence"]}}}`)
	}))
	defer other.Close()
	at := func(provider, model string) harness.Model {
		return harness.Model{Targets: []harness.Target{{Provider: provider, Model: model}}}
	}
	g := start(t, v, func(c *harness.Config) {
		c.Providers["other"] = harness.Provider{Shape: "images", BaseURL: other.URL + "/v1", APIKeys: []string{"k"}}
		c.Models = map[string]harness.Model{
			"V_2A": at("other", "gpt-image-1"), "V_2": at("vendor", "V_2"),
			"gen-image-1": at("vendor", "imagegen-v3"), "gen-image-2": at("other", "gpt-image-2"),
			"legacy-image-3": at("vendor", "imagegen-v3"), "legacy-image-2": at("other", "dall-e-2"),
		}
	})
	const unsafe, withheld = `{"error":"not safe"}`, `{"created":"2025-01-02T03:04:05.678901+00:00","data":[` +
		`{"prompt":"a","resolution":"512x512","is_image_safe":false,"seed":8,"url":null}]}`
	for _, tt := range []struct {
		model   string
		status  int // of the image vendor
		reply   string
		want    int
		code    string
		details bool
	}{
		{"V_2A", 0, "", 422, "content_policy_violation", false},
		{"V_2", 422, unsafe, 422, "content_policy_violation", false},
		{"gen-image-1", 422, unsafe, 400, "moderation_blocked", false},
		{"gen-image-1", 200, withheld, 400, "moderation_blocked", true},
		{"gen-image-2", 0, "", 400, "moderation_blocked", true},
		{"legacy-image-3", 422, unsafe, 400, "content_policy_violation", false},
		{"legacy-image-3", 200, withheld, 400, "content_policy_violation", false},
		{"legacy-image-2", 0, "", 400, "content_policy_violation", false},
	} {
		v.answer(tt.status, tt.reply)
		path, body := "/v1/images/generations", `{"prompt":"a","model":"`+tt.model+`"}`
		if strings.HasPrefix(tt.model, "V") {
			path, body = "/imagegen/generate", `{"image_request":`+body+`}`
		}
		a := postJSON(t, g, path, body)
		if a.Error == nil || a.status != tt.want || a.Error.Code != tt.code ||
			bytes.Contains(a.body, []byte("moderation_details")) != tt.details {
			t.Errorf("%s: got %d %s, want %d %s", tt.model, a.status, a.body, tt.want, tt.code)
		}
	}
}

// The documents list fields that the vendor's own third generation refuses. The
// request is sent once more without them, and the loss is reported.
func TestFieldsThatTheVendorRefusesAreGivenUp(t *testing.T) {
	v := newVendor(t)
	g := start(t, v, nil)
	edit := []part{{name: "prompt", text: "a hat"}, {name: "image", file: pic}, {name: "mask", file: black},
		{name: "aspect_ratio", text: "16x9"}, {name: "negative_prompt", text: "rain"}}
	background := []part{
		{name: "prompt", text: "a beach"},
		{name: "image", file: pic},
		{name: "style_type", text: "REALISTIC"},
	}
	for name, tt := range map[string]struct {
		path    string
		parts   []part
		refuses []string
		status  int
		calls   int
		lost    string
	}{
		"a vendor that takes them":    {"edit", edit, nil, 200, 1, ""},
		"an edit":                     {"edit", edit, []string{"aspect_ratio", "negative_prompt"}, 200, 2, "aspect_ratio,negative_prompt"},
		"a background":                {"replace-background", background, []string{"style_type"}, 200, 2, "style_type"},
		"a refusal of something else": {"edit", edit, []string{"prompt"}, 400, 2, ""},
		"nothing to give up":          {"edit", edit[:3], []string{"prompt"}, 400, 1, ""},
	} {
		v.mu.Lock()
		v.refuses = tt.refuses
		v.mu.Unlock()
		a := postForm(t, g, "/imagegen/v1/imagegen-v3/"+tt.path, tt.parts...)
		calls := v.asked()
		if a.status != tt.status || len(calls) != tt.calls || a.header.Get("X-Stagedoor-Losses") != tt.lost {
			t.Errorf("%s: %d %s, lost %q: the vendor saw %q", name, a.status, a.body,
				a.header.Get("X-Stagedoor-Losses"), calls)
		}
	}
}

// The embedded sandbox serves every route.
func TestSandboxServesEveryRoute(t *testing.T) {
	g := harness.Start(t, harness.CatchAll(harness.Provider{Shape: "sandbox"}))
	for _, path := range sorted(asks) {
		a := postForm(t, g, path, asks[path]...)
		if a.status != http.StatusOK || len(a.Data)+len(a.Descriptions) == 0 {
			t.Errorf("%s: %d %.300s", path, a.status, a.body)
			continue
		}
		if len(a.Data) > 0 {
			fetched(t, g, *a.Data[0].URL)
		}
	}
	document := part{name: "image_request", file: []byte(`{"prompt":"a hat"}`), kind: "application/json"}
	if a := postForm(t, g, "/imagegen/remix", document, part{name: "image_file", file: pic}); a.status != http.StatusOK {
		t.Errorf("a document that a browser sent as a file: %d %s", a.status, a.body)
	}
	a := postJSON(t, g, "/imagegen/generate",
		`{"image_request":{"prompt":"a cat","num_images":3,"aspect_ratio":"SPECT_16_10","seed":9}}`)
	if a.status != http.StatusOK || len(a.Data) != 3 || a.Data[0].Style != "AUTO" {
		t.Errorf("%d %.300s", a.status, a.body)
	}
}

// Unmodified clients of the vendor find their paths where an operator says so.
func TestPathsMayHaveOtherNames(t *testing.T) {
	v := newVendor(t)
	g := start(t, v, func(c *harness.Config) {
		c.Aliases = map[string]string{"/ideogram": "/imagegen", "/ideogram/v1/ideogram-v3": "/imagegen/v1/imagegen-v3"}
	})
	for _, path := range []string{"/ideogram/generate", "/imagegen/generate"} {
		if a := postJSON(t, g, path, `{"image_request":{"prompt":"a"}}`); a.status != http.StatusOK {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if a := postForm(t, g, "/ideogram/v1/ideogram-v3/generate", asks[v3+"generate"]...); a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// Files of the largest size pass through. The gateway keeps them on disk: what it
// takes in memory does not grow with them.
func TestLargeFilesPassThrough(t *testing.T) {
	v := newVendor(t)
	g := start(t, v, nil)
	big := append(bytes.Clone(pic), make([]byte, 10<<20-len(pic))...)
	random := rand.NewChaCha8([32]byte{})
	random.Read(big[len(pic):])
	a := postForm(t, g, v3+"remix", part{name: "prompt", text: "x"}, part{name: "image", file: big})
	want := fmt.Sprintf("/v1/ideogram-v3/remix prompt=x num_images=1 image=%d bytes of image/png", len(big))
	if got := v.asked(); a.status != http.StatusOK || len(got) != 1 || got[0] != want {
		t.Errorf("%d %.300s: the vendor saw %.200q", a.status, a.body, got)
	}
}

func b64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
