package images_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/shapes/images"
)

// itself is a catalogue without aliases.
func itself(model string) string { return model }

type object = map[string]any

// body is a request for a cat with further parameters.
func body(t testing.TB, more object) []byte {
	t.Helper()
	all := object{"prompt": "a cat"}
	maps.Copy(all, more)
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// broken is the parameter that err is about, and its code.
func broken(t *testing.T, err error) (param string, code any) {
	t.Helper()
	var e *dialogue.Error
	if !errors.As(err, &e) || e.Status < 400 || e.Status > 413 || e.Type == "" || e.Message == "" {
		t.Fatalf("%v is no refusal of a parameter", err)
	}
	return e.Param, e.Code
}

// The test has a row for every rule of every family of models.
func TestRulesByModel(t *testing.T) {
	type row struct {
		models string
		with   object
		param  string // "": it is fine
	}
	const (
		old2, old3  = "legacy-image-2", "legacy-image-3"
		one         = "gen-image-1 gen-image-1-mini gen-image-1.5 gpt-image-1"
		two         = "gen-image-2 gen-image-2-2026-04-21"
		modern      = one + " " + two
		legacy, all = old2 + " " + old3 + " dall-e-3", old2 + " " + old3 + " " + modern + " other-model"
	)
	letters := func(n int) string { return strings.Repeat("ä", n) }
	rows := []row{
		{all, nil, ""},
		{all, object{"prompt": nil}, "prompt"},
		{all, object{"prompt": ""}, "prompt"},
		{all, object{"prompt": 7}, "prompt"},
		{modern, object{"prompt": letters(32000)}, ""},
		{modern, object{"prompt": letters(32001)}, "prompt"},
		{old3, object{"prompt": letters(4000)}, ""},
		{old3, object{"prompt": letters(4001)}, "prompt"},
		{old2, object{"prompt": letters(1000)}, ""},
		{old2, object{"prompt": letters(1001)}, "prompt"},

		{all, object{"n": nil}, ""},
		{all, object{"n": 1}, ""},
		{all, object{"n": 0}, "n"},
		{all, object{"n": 11}, "n"},
		{all, object{"n": 1.5}, "n"},
		{all, object{"n": "1"}, "n"},
		{modern + " " + old2, object{"n": 10}, ""},
		{old3, object{"n": 2}, "n"},

		{all, object{"size": nil}, ""},
		{all, object{"size": 1024}, "size"},
		{all, object{"size": "1024x1024"}, ""},
		{all, object{"size": "large"}, "size"},
		{all, object{"size": ""}, "size"},
		{modern, object{"size": "auto"}, ""},
		{legacy, object{"size": "auto"}, ""},
		{modern, object{"size": "1536x1024"}, ""},
		{modern, object{"size": "1024x1536"}, ""},
		{one, object{"size": "1792x1024"}, "size"},
		{one, object{"size": "512x512"}, "size"},
		{old2, object{"size": "256x256"}, ""},
		{old2, object{"size": "512x512"}, ""},
		{old2, object{"size": "1792x1024"}, "size"},
		{old3, object{"size": "1792x1024"}, ""},
		{old3, object{"size": "1024x1792"}, ""},
		{old3, object{"size": "512x512"}, "size"},
		{two, object{"size": "3840x2160"}, ""},
		{two, object{"size": "2160x3840"}, ""},
		{two, object{"size": "2560x1440"}, ""},
		{two, object{"size": "1408x480"}, ""},
		{two, object{"size": "1456x480"}, "size"},    // beyond 3:1
		{two, object{"size": "480x1456"}, "size"},    // likewise
		{two, object{"size": "1025x1024"}, "size"},   // not by 16
		{two, object{"size": "1024x1032"}, "size"},   // likewise
		{two, object{"size": "3856x2160"}, "size"},   // too long
		{two, object{"size": "3840x2176"}, "size"},   // too many pixels
		{two, object{"size": "800x800"}, "size"},     // too few
		{two, object{"size": "0x0"}, "size"},         // none
		{two, object{"size": "1024 x 1024"}, "size"}, // spaces

		{all, object{"quality": nil}, ""},
		{all, object{"quality": "auto"}, ""},
		{all, object{"quality": "best"}, "quality"},
		{modern, object{"quality": "low"}, ""},
		{modern, object{"quality": "medium"}, ""},
		{modern, object{"quality": "high"}, ""},
		{modern, object{"quality": "hd"}, "quality"},
		{modern, object{"quality": "standard"}, "quality"},
		{old3, object{"quality": "hd"}, ""},
		{legacy, object{"quality": "standard"}, ""},
		{old2, object{"quality": "hd"}, "quality"},
		{legacy, object{"quality": "high"}, "quality"},

		{legacy, object{"response_format": "url"}, ""},
		{legacy, object{"response_format": "b64_json"}, ""},
		{legacy, object{"response_format": "base64"}, "response_format"},
		{modern, object{"response_format": "url"}, "response_format"},
		{modern, object{"response_format": "b64_json"}, ""},
		{modern, object{"response_format": nil}, ""},

		{modern, object{"output_format": "jpeg"}, ""},
		{modern, object{"output_format": "webp"}, ""},
		{modern, object{"output_format": "png"}, ""},
		{modern, object{"output_format": "gif"}, "output_format"},
		{legacy, object{"output_format": "png"}, "output_format"},
		{legacy, object{"output_format": nil}, ""},
		{modern, object{"output_format": "jpeg", "output_compression": 0}, ""},
		{modern, object{"output_format": "webp", "output_compression": 100}, ""},
		{modern, object{"output_format": "webp", "output_compression": 101}, "output_compression"},
		{modern, object{"output_format": "webp", "output_compression": -1}, "output_compression"},
		{modern, object{"output_format": "png", "output_compression": 100}, ""},
		{modern, object{"output_compression": 50}, "output_compression"},
		{legacy, object{"output_compression": 100}, "output_compression"},

		{modern, object{"background": "opaque"}, ""},
		{modern, object{"background": "auto"}, ""},
		{modern, object{"background": "blue"}, "background"},
		{one, object{"background": "transparent"}, ""},
		{one, object{"background": "transparent", "output_format": "webp"}, ""},
		{one, object{"background": "transparent", "output_format": "jpeg"}, "background"},
		{two, object{"background": "transparent"}, "background"},
		{legacy, object{"background": "opaque"}, "background"},

		{modern, object{"stream": true}, ""},
		{modern, object{"stream": true, "partial_images": 0}, ""},
		{modern, object{"stream": true, "partial_images": 3}, ""},
		{all, object{"partial_images": 0}, ""},
		{modern, object{"stream": true, "partial_images": nil}, ""},
		{modern, object{"stream": true, "partial_images": 4}, "partial_images"},
		{modern, object{"stream": true, "partial_images": -1}, "partial_images"},
		{modern, object{"stream": false, "partial_images": 1}, "partial_images"},
		{modern, object{"partial_images": 1}, "partial_images"},
		{modern, object{"stream": true, "n": 2}, "n"},
		{modern, object{"stream": "true"}, "stream"},
		{legacy, object{"stream": true}, "stream"},
		{legacy, object{"stream": false}, ""},
		{legacy, object{"partial_images": 1}, "partial_images"},

		{modern, object{"moderation": "low"}, ""},
		{modern, object{"moderation": "auto"}, ""},
		{modern, object{"moderation": "none"}, "moderation"},
		{legacy, object{"moderation": "low"}, "moderation"},

		{old3, object{"style": "vivid"}, ""},
		{old3, object{"style": "natural"}, ""},
		{old3, object{"style": "wild"}, "style"},
		{old2 + " " + modern, object{"style": "vivid"}, "style"},

		{all, object{"user": "u"}, ""},
		{all, object{"user": 1}, "user"},
		{all, object{"a_field_of_the_future": object{"x": 1}}, ""},
		{all, object{"input_fidelity": "high"}, "input_fidelity"}, // belongs to edits
	}
	for _, row := range rows {
		for _, model := range strings.Fields(row.models) {
			with := maps.Clone(row.with)
			if with == nil {
				with = object{}
			}
			with["model"] = model
			name := fmt.Sprintf("%s %.80v", model, row.with)
			_, err := images.CheckGeneration(body(t, with), itself)
			if err == nil {
				if row.param != "" {
					t.Errorf("%s: was taken", name)
				}
				continue
			}
			param, _ := broken(t, err)
			if param != row.param {
				t.Errorf("%s: %v, want %q", name, err, row.param)
			}
		}
	}
}

func TestParametersOfOtherModelsAreUnknown(t *testing.T) {
	for model, name := range map[string]string{"gen-image-1": "style", "gen-image-2": "response_format", "legacy-image-2": "background", "legacy-image-3": "moderation"} {
		value := map[string]string{"style": "vivid", "response_format": "url", "background": "auto",
			"moderation": "low"}[name]
		_, err := images.CheckGeneration(body(t, object{"model": model, name: value}), itself)
		if param, code := broken(t, err); param != name || code != "unknown_parameter" {
			t.Errorf("%s: %s, %v", model, param, code)
		}
	}
}

func TestTheFirstBrokenRuleIsTold(t *testing.T) {
	order := []string{"prompt", "n", "size", "quality", "output_format", "background", "moderation"}
	wrong := object{
		"prompt":        "",
		"n":             0,
		"size":          "x",
		"quality":       "x",
		"output_format": "x",
		"background":    "x",
		"moderation":    "x",
	}
	for i, want := range order {
		with := object{"model": "gen-image-1"}
		for _, name := range order[i:] {
			with[name] = wrong[name]
		}
		_, err := images.CheckGeneration(body(t, with), itself)
		if param, _ := broken(t, err); param != want {
			t.Errorf("from %s on: %s", want, param)
		}
	}
}

func TestAMissingModelIsTheOneThatFits(t *testing.T) {
	for _, row := range []struct {
		with object
		want string
	}{
		{nil, "legacy-image-2"},
		{object{"model": nil}, "legacy-image-2"},
		{object{"size": "512x512", "quality": "standard"}, "legacy-image-2"},
		{object{"stream": false}, "legacy-image-2"},
		{object{"stream": true}, "gen-image-1"},
		{object{"output_format": "webp"}, "gen-image-1"},
		{object{"output_format": "webp", "output_compression": 5}, "gen-image-1"},
		{object{"background": "opaque"}, "gen-image-1"},
		{object{"moderation": "low"}, "gen-image-1"},
		{object{"size": "1536x1024"}, "gen-image-1"},
		{object{"size": "auto"}, "gen-image-1"},
		{object{"quality": "high"}, "gen-image-1"},
		{object{"quality": "auto"}, "legacy-image-2"},
	} {
		r, err := images.CheckGeneration(body(t, row.with), itself)
		if err != nil || r.Model != row.want {
			t.Errorf("%v: %+v, %v", row.with, r, err)
		}
	}
}

// An alias keeps the rules of the model it stands for.
func TestAliasesHaveTheirModelsRules(t *testing.T) {
	alias := func(string) string { return "legacy-image-3" }
	_, err := images.CheckGeneration(body(t, object{"model": "pretty", "n": 2}), alias)
	if param, _ := broken(t, err); param != "n" {
		t.Errorf("%s", param)
	}
}

func pngOf(t testing.TB, w, h int) []byte {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	m.Set(0, 0, color.Black)
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func file(t testing.TB, field string, w, h int) images.File {
	t.Helper()
	f, err := picture.NewFile("x.png", pngOf(t, w, h))
	if err != nil {
		t.Fatal(err)
	}
	return images.File{Field: field, File: f}
}

func TestRulesOfEditForms(t *testing.T) {
	many := func(n int) (out []images.File) {
		for range n {
			out = append(out, file(t, "image[]", 8, 8))
		}
		return out
	}
	jpeg := file(t, "image", 8, 8)
	jpeg.MediaType = "image/jpeg"
	for name, tc := range map[string]struct {
		texts []images.Text
		files []images.File
		param string
	}{
		"fine":                   {nil, many(1), ""},
		"sixteen":                {nil, many(16), ""},
		"seventeen":              {nil, many(17), "image"},
		"none":                   {nil, nil, "image"},
		"a mask only":            {nil, []images.File{file(t, "mask", 8, 8)}, "image"},
		"with a mask":            {nil, append(many(2), file(t, "mask", 8, 8)), ""},
		"two masks":              {nil, append(many(1), file(t, "mask", 8, 8), file(t, "mask", 8, 8)), "mask"},
		"a mask of another size": {nil, append(many(1), file(t, "mask", 8, 9)), "mask"},
		"fidelity":               {[]images.Text{{Name: "input_fidelity", Value: "high"}}, many(1), ""},
		"unknown fidelity":       {[]images.Text{{Name: "input_fidelity", Value: "full"}}, many(1), "input_fidelity"},
		"n":                      {[]images.Text{{Name: "n", Value: "2"}}, many(1), ""},
		"n is no integer":        {[]images.Text{{Name: "n", Value: "1.0"}}, many(1), "n"},
		"n twice":                {[]images.Text{{Name: "n", Value: "1"}, {Name: "n", Value: "2"}}, many(1), "n"},
		"stream":                 {[]images.Text{{Name: "stream", Value: "true"}, {Name: "partial_images", Value: "2"}}, many(1), ""},
		"stream is no truth":     {[]images.Text{{Name: "stream", Value: "yes"}}, many(1), "stream"},
		"no editor":              {[]images.Text{{Name: "model", Value: "legacy-image-3"}}, many(1), "model"},
		"old, square":            {[]images.Text{{Name: "model", Value: "legacy-image-2"}}, many(1), ""},
		"old, not square":        {[]images.Text{{Name: "model", Value: "legacy-image-2"}}, []images.File{file(t, "image", 8, 4)}, "image"},
		"old, no PNG":            {[]images.Text{{Name: "model", Value: "legacy-image-2"}}, []images.File{jpeg}, "image"},
		"old, two":               {[]images.Text{{Name: "model", Value: "legacy-image-2"}}, many(2), "image"},
	} {
		r, err := images.CheckEditForm(append([]images.Text{{Name: "prompt", Value: "a hat"}}, tc.texts...), tc.files,
			itself)
		if err == nil {
			if tc.param != "" || len(r.Sources) == 0 {
				t.Errorf("%s: was taken", name)
			}
			continue
		}
		if param, _ := broken(t, err); param != tc.param {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnEditWithoutAModelIsForTheEditor(t *testing.T) {
	r, err := images.CheckEditForm([]images.Text{{Name: "prompt", Value: "a hat"}},
		[]images.File{file(t, "image", 8, 8)}, itself)
	if err != nil || r.Model != "gen-image-1.5" || !r.Inline {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestRulesOfEditsInJSON(t *testing.T) {
	url := func(w, h int) string {
		return "data:image/png;base64," + base64.StdEncoding.EncodeToString(pngOf(t, w, h))
	}
	ref := func(u string) object { return object{"image_url": u} }
	many := make([]any, 17)
	for i := range many {
		many[i] = ref(url(2, 2))
	}
	for name, tc := range map[string]struct {
		with  object
		param string
	}{
		"fine":           {object{"images": []any{ref(url(8, 8))}}, ""},
		"with charset":   {object{"images": []any{ref("DATA:image/png;charset=utf-8;BASE64," + url(8, 8)[len("data:image/png;base64,"):])}}, ""},
		"mask":           {object{"images": []any{ref(url(8, 8))}, "mask": ref(url(8, 8))}, ""},
		"small mask":     {object{"images": []any{ref(url(8, 8))}, "mask": ref(url(4, 8))}, "mask"},
		"none":           {object{}, "images"},
		"empty":          {object{"images": []any{}}, "images"},
		"no list":        {object{"images": ref(url(8, 8))}, "images"},
		"too many":       {object{"images": many}, "images"},
		"a file id":      {object{"images": []any{object{"file_id": "f"}}}, "images.0.file_id"},
		"an address":     {object{"images": []any{ref("https://example.com/x.png")}}, "images.0.image_url"},
		"no base64":      {object{"images": []any{ref("data:image/png;base64,!!!!")}}, "images.0.image_url"},
		"cut off":        {object{"images": []any{ref(url(8, 8)[:40] + "A")}}, "images.0.image_url"},
		"no picture":     {object{"images": []any{ref("data:image/png;base64,aGk=")}}, "images.0.image_url"},
		"not an object":  {object{"images": []any{"x"}}, "images.0"},
		"without either": {object{"images": []any{object{}}}, "images.0.image_url"},
	} {
		_, err := images.CheckEdit(body(t, tc.with), itself)
		if err == nil {
			if tc.param != "" {
				t.Errorf("%s: was taken", name)
			}
			continue
		}
		if param, _ := broken(t, err); param != tc.param {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzCheckGeneration(f *testing.F) {
	f.Add(`{"prompt":"a","model":"gen-image-2","size":"16x16","n":1e1,"stream":true}`)
	f.Add(`{"prompt":"\ud800","n":1e400,"output_compression":-0}`)
	f.Fuzz(func(t *testing.T, in string) {
		if !json.Valid([]byte(in)) || !strings.HasPrefix(in, "{") {
			return
		}
		r, err := images.CheckGeneration([]byte(in), itself)
		if err != nil {
			var e *dialogue.Error
			if !errors.As(err, &e) || e.Status != 400 {
				t.Fatal(err)
			}
			return
		}
		if r.N < 1 || r.N > 10 || r.Prompt == "" || r.Partials > 3 || r.Model == "" {
			t.Errorf("%+v", r)
		}
	})
}

func FuzzCheckEdit(f *testing.F) {
	f.Add(`{"prompt":"a","images":[{"image_url":"data:;base64,aGk="}],"mask":{}}`)
	f.Fuzz(func(t *testing.T, in string) {
		if !json.Valid([]byte(in)) || !strings.HasPrefix(in, "{") {
			return
		}
		r, err := images.CheckEdit([]byte(in), itself)
		if err == nil {
			_ = r.Close()
		}
	})
}
