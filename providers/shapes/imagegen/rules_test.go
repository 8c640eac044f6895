package imagegen_test

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/shapes/imagegen"
)

// drawn is a picture file.
func drawn(t testing.TB, width, height int) *picture.File {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	f, err := picture.NewFile("x.png", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func route(t testing.TB, path string) *imagegen.Route {
	t.Helper()
	for _, r := range imagegen.Routes {
		if r.Path == path {
			return r
		}
	}
	t.Fatalf("no route %s", path)
	return nil
}

// form reads "name=value" texts, "name@8x8" files and, where the route has a
// document, one text of JSON.
func form(t testing.TB, path string, parts ...string) (*imagegen.Input, error) {
	t.Helper()
	var texts []imagegen.Text
	var files []picture.Attachment
	for _, p := range parts {
		if name, size, ok := strings.Cut(p, "@"); ok && !strings.Contains(name, "=") {
			s, _ := picture.ParseSize(size)
			files = append(files, picture.Attachment{Name: name, File: drawn(t, s.Width, s.Height)})
			continue
		}
		name, value, _ := strings.Cut(p, "=")
		texts = append(texts, imagegen.Text{Name: name, Value: value})
	}
	return route(t, path).FromForm(texts, files)
}

// verdict is the field and the rest of the message of what is wrong.
func verdict(t testing.TB, path string, in *imagegen.Input, err error) (param, message string) {
	t.Helper()
	if err == nil {
		err = route(t, path).Check(in)
	}
	if err == nil {
		return "", ""
	}
	var refusal *dialogue.Error
	if !errors.As(err, &refusal) {
		t.Fatalf("%s: %v is no client's error", path, err)
	}
	if want := map[bool]int{true: 413, false: 400}[refusal.Code == "file_too_large"]; refusal.Status != want {
		t.Errorf("%s: status %d, want %d", path, refusal.Status, want)
	}
	if !strings.HasPrefix(refusal.Message, refusal.Param+": ") {
		t.Errorf("%s: message %q does not name %q", path, refusal.Message, refusal.Param)
	}
	return refusal.Param, strings.TrimPrefix(refusal.Message, refusal.Param+": ")
}

const (
	required = "is required"
	seeds    = "must be an integer between 0 and 2147483647"
	numbers  = "must be an integer between 1 and 8"
	weights  = "must be an integer between 1 and 100"
	magics   = "must be one of AUTO, ON, OFF"
	modelsV2 = "must be one of V_1, V_1_TURBO, V_2, V_2_TURBO, V_2A, V_2A_TURBO"
	sizes    = "must be WIDTHxHEIGHT, each between 64 and 4096, for example 1024x1024"
	ratios   = "must be one of 1x3, 3x1, 1x2, 2x1, 9x16, 16x9, 10x16, 16x10, 2x3, 3x2, 3x4, 4x3, 4x5, 5x4, 1x1"
	twice    = "must not be given more than once"
	noFile   = "must be a file, in a multipart/form-data body"
)

// The test breaks every rule of the route with a JSON body, and those that the vendor adds. An empty rule
// means that the request is valid. The document's members follow the
// comma.
func TestRulesOfGenerateV2(t *testing.T) {
	const aspects = "must be one of ASPECT_1_1, ASPECT_3_1, ASPECT_1_3, ASPECT_3_2, ASPECT_2_3, ASPECT_4_3, ASPECT_3_4, ASPECT_16_9, ASPECT_9_16, ASPECT_10_16, ASPECT_16_10, SPECT_16_10"
	const styles = "must be one of AUTO, GENERAL, REALISTIC, DESIGN, RENDER_3D, ANIME"
	for _, tt := range []struct{ members, param, rule string }{
		{``, "", ""},
		{`"prompt":null`, "prompt", required},
		{`"prompt":""`, "prompt", "must not be empty"},
		{`"prompt":" \n"`, "prompt", "must not be empty"},
		{`"prompt":7`, "prompt", "must be a string"},
		{`"aspect_ratio":"ASPECT_1_1"`, "", ""}, {`"aspect_ratio":"ASPECT_3_1"`, "", ""},
		{`"aspect_ratio":"ASPECT_1_3"`, "", ""},
		{`"aspect_ratio":"ASPECT_3_2"`, "", ""}, {`"aspect_ratio":"ASPECT_2_3"`, "", ""},
		{`"aspect_ratio":"ASPECT_4_3"`, "", ""},
		{`"aspect_ratio":"ASPECT_3_4"`, "", ""}, {`"aspect_ratio":"ASPECT_16_9"`, "", ""},
		{`"aspect_ratio":"ASPECT_9_16"`, "", ""},
		{`"aspect_ratio":"ASPECT_10_16"`, "", ""}, {`"aspect_ratio":"SPECT_16_10"`, "", ""},
		{`"aspect_ratio":"ASPECT_16_10"`, "", ""},
		{`"aspect_ratio":"16x9"`, "aspect_ratio", aspects}, {`"aspect_ratio":"ASPECT_1_2"`, "aspect_ratio", aspects},
		{`"aspect_ratio":"SPECT_1_1"`, "aspect_ratio", aspects}, {`"aspect_ratio":1`, "aspect_ratio", aspects},
		{`"aspect_ratio":"ASPECT_16x9"`, "aspect_ratio", aspects},
		{`"aspect_ratio":"ASPECT_1_1","resolution":"1024x1024"`, "aspect_ratio", "cannot be combined with resolution"},
		{`"resolution":"1024x768"`, "", ""}, {`"resolution":"RESOLUTION_1024_768","model":"V_2_TURBO"`, "", ""},
		{`"resolution":"1024"`, "resolution", sizes}, {`"resolution":"10x10"`, "resolution", sizes},
		{`"resolution":"99999x99999"`, "resolution", sizes},
		{`"resolution":"RESOLUTION_1024x768"`, "resolution", sizes},
		{`"resolution":"1024x768","model":"V_1"`, "resolution", "is only for the models V_2, V_2_TURBO"},
		{`"resolution":"1024x768","model":"V_2A"`, "resolution", "is only for the models V_2, V_2_TURBO"},
		{`"resolution":"1024x768","model":"V_9"`, "model", modelsV2},
		{`"model":"V_1"`, "", ""}, {`"model":"V_1_TURBO"`, "", ""}, {`"model":"V_2"`, "", ""},
		{`"model":"V_2_TURBO"`, "", ""},
		{`"model":"V_2A"`, "", ""}, {`"model":"V_2A_TURBO"`, "", ""}, {`"model":"v_2"`, "model", modelsV2},
		{`"model":"V_3"`, "model", modelsV2},
		{`"magic_prompt_option":"AUTO"`, "", ""}, {`"magic_prompt_option":"ON"`, "", ""},
		{`"magic_prompt_option":"OFF"`, "", ""},
		{`"magic_prompt_option":"MAYBE"`, "magic_prompt_option", magics},
		{`"seed":0`, "", ""}, {`"seed":2147483647`, "", ""}, {`"seed":null`, "", ""},
		{`"seed":-1`, "seed", seeds}, {`"seed":2147483648`, "seed", seeds}, {`"seed":1.5`, "seed", seeds},
		{`"seed":"7"`, "seed", seeds}, {`"seed":1e3`, "seed", seeds},
		{`"style_type":"AUTO"`, "", ""}, {`"style_type":"GENERAL"`, "", ""}, {`"style_type":"REALISTIC"`, "", ""},
		{`"style_type":"DESIGN"`, "", ""},
		{`"style_type":"RENDER_3D"`, "", ""}, {`"style_type":"ANIME","model":"V_2A"`, "", ""},
		{`"style_type":"BAROQUE"`, "style_type", styles},
		{`"style_type":"AUTO","model":"V_1"`, "style_type", "is only for the models V_2, V_2_TURBO, V_2A, V_2A_TURBO"},
		{`"style_type":"ANIME","model":"V_1_TURBO"`, "style_type",
			"is only for the models V_2, V_2_TURBO, V_2A, V_2A_TURBO"},
		{`"negative_prompt":"dogs","model":"V_1"`, "", ""}, {`"negative_prompt":"dogs"`, "", ""},
		{`"negative_prompt":""`, "", ""},
		{`"negative_prompt":"dogs","model":"V_2A"`, "negative_prompt",
			"is only for the models V_1, V_1_TURBO, V_2, V_2_TURBO"},
		{`"negative_prompt":["dogs"]`, "negative_prompt", "must be a string"},
		{`"num_images":1`, "", ""}, {`"num_images":8`, "", ""}, {`"num_images":0`, "num_images", numbers},
		{`"num_images":9`, "num_images", numbers},
		{`"color_palette":{"name":"EMBER"}`, "", ""},
		{`"color_palette":"EMBER"`, "color_palette", "must be a JSON object"},
		{`"unheard_of":true`, "", ""},
		// The documents' order, not the client's, decides which error is reported.
		{`"num_images":9,"seed":-1,"aspect_ratio":"x"`, "aspect_ratio", aspects},
	} {
		body := `{"image_request":{"prompt":"a cat"}}`
		if tt.members != "" {
			body = `{"image_request":{` + tt.members + `}}`
			if !strings.Contains(tt.members, `"prompt"`) {
				body = `{"image_request":{"prompt":"a cat",` + tt.members + `}}`
			}
		}
		in, err := route(t, "/generate").FromJSON([]byte(body))
		want := tt.param
		if want != "" {
			want = "image_request." + want
		}
		if param, rule := verdict(t, "/generate", in, err); param != want || rule != tt.rule {
			t.Errorf("%s: got %q %q, want %q %q", body, param, rule, want, tt.rule)
		}
	}
	for body, rule := range map[string]string{`{}`: required, `{"image_request":null}`: required, `{"image_request":"{}"}`: "must be an object", `{"prompt":"a cat"}`: required} {
		in, err := route(t, "/generate").FromJSON([]byte(body))
		if param, got := verdict(t, "/generate", in, err); param != "image_request" || got != rule {
			t.Errorf("%s: got %q %q, want %q", body, param, got, rule)
		}
	}
}

// The routes with forms. Each row's parts come behind those that make the route
// valid; a part whose name is among them takes their place, "-name" takes one
// away.
func TestRulesOfForms(t *testing.T) {
	whole := map[string][]string{
		"/edit":                              {"image_file@40x30", "mask@40x30", "prompt=a hat", "model=V_2"},
		"/remix":                             {`image_request={"prompt":"a hat"}`, "image_file@40x30"},
		"/reframe":                           {"image_file@40x30", "resolution=1024x768", "model=V_2"},
		"/describe":                          {"image_file@40x30"},
		"/upscale":                           {"image_request={}", "image_file@40x30"},
		"/v1/imagegen-v3/generate":           {"prompt=a cat"},
		"/v1/imagegen-v3/remix":              {"prompt=a cat", "image@40x30"},
		"/v1/imagegen-v3/edit":               {"prompt=a cat", "image@40x30", "mask@40x30"},
		"/v1/imagegen-v3/replace-background": {"prompt=a beach", "image@40x30"},
		"/v1/imagegen-v3/reframe":            {"image@40x30", "resolution=1024x768"},
	}
	v3 := []string{"generate", "remix", "edit", "replace-background"}
	type row struct{ path, parts, param, rule string }
	rows := []row{
		{"/edit", "", "", ""},
		{"/edit", "-image_file", "image_file", required},
		{"/edit", "-mask", "mask", required},
		{
			"/edit",
			"-prompt",
			"prompt",
			required,
		},
		{"/edit", "prompt=", "prompt", "must not be empty"},
		{"/edit", "-model", "model", required},
		{
			"/edit",
			"model=V_2_TURBO",
			"",
			"",
		},
		{"/edit", "model=V_2A", "model", "must be one of V_2, V_2_TURBO"},
		{"/edit", "model=V_1", "model", "must be one of V_2, V_2_TURBO"},
		{"/edit", "mask@30x40", "mask", "must have the dimensions of the image, 40x30, and has 30x40"},
		{"/edit", "image_file@40x30|image_file@40x30", "image_file", twice},
		{"/edit", "magic_prompt_option=ON", "", ""},
		{"/edit", "magic_prompt_option=on", "magic_prompt_option", magics},
		{
			"/edit",
			"num_images=8",
			"",
			"",
		},
		{"/edit", "num_images=9", "num_images", numbers},
		{"/edit", "num_images=1.0", "num_images", numbers},
		{
			"/edit",
			"num_images=",
			"num_images",
			numbers,
		},
		{"/edit", "num_images=+1", "num_images", numbers},
		{"/edit", "num_images=1|num_images=1", "num_images", twice},
		{"/edit", "seed=2147483647", "", ""},
		{"/edit", "seed=x", "seed", seeds},
		{
			"/edit",
			"style_type=ANIME",
			"",
			"",
		},
		{
			"/edit",
			"style_type=anime",
			"style_type",
			"must be one of AUTO, GENERAL, REALISTIC, DESIGN, RENDER_3D, ANIME",
		},
		{"/edit", "unheard=of", "", ""},
		{"/edit", "-image_file|-mask|-prompt", "image_file", required},

		{
			"/remix",
			"",
			"",
			"",
		},
		{"/remix", "-image_request", "image_request", required},
		{"/remix", "-image_file", "image_file", required},
		{
			"/remix",
			`image_request={"prompt":`,
			"image_request",
			"must be a JSON object, and is not valid JSON",
		},
		{
			"/remix",
			`image_request={"prompt":"a","prompt":"b"}`,
			"image_request.prompt",
			"must not occur twice in its object",
		},
		{"/remix", `image_request=["prompt"]`, "image_request", "must be a JSON object"},
		{"/remix", `image_request={"prompt":"a"}|image_request={"prompt":"a"}`, "image_request", twice},
		{"/remix", `image_request={}`, "image_request.prompt", required},
		{
			"/remix",
			`image_request={"prompt":"a","image_weight":100,"model":"V_1","negative_prompt":"b","num_images":8,"seed":0,"magic_prompt_option":"OFF","aspect_ratio":"ASPECT_10_16"}`,
			"",
			"",
		},
		{"/remix", `image_request={"prompt":"a","image_weight":0}`, "image_request.image_weight", weights},
		{"/remix", `image_request={"prompt":"a","image_weight":101}`, "image_request.image_weight", weights},
		{"/remix", `image_request={"prompt":"a","image_weight":"50"}`, "image_request.image_weight", weights},
		{
			"/remix",
			`image_request={"prompt":"a","model":"V_2A_TURBO"}`,
			"",
			"",
		},
		{"/remix", `image_request={"prompt":"a","model":"V_3"}`, "image_request.model", modelsV2},
		{
			"/remix",
			`image_request={"prompt":"a","resolution":"1024x768","aspect_ratio":"ASPECT_1_1"}`,
			"image_request.aspect_ratio",
			"cannot be combined with resolution",
		},
		{
			"/remix",
			`image_request={"prompt":"a","style_type":"AUTO","model":"V_1"}`,
			"image_request.style_type",
			"is only for the models V_2, V_2_TURBO, V_2A, V_2A_TURBO",
		},

		{
			"/reframe",
			"",
			"",
			"",
		},
		{"/reframe", "-image_file", "image_file", required},
		{"/reframe", "-resolution", "resolution", required},
		{
			"/reframe",
			"-model",
			"model",
			required,
		},
		{"/reframe", "resolution=big", "resolution", sizes},
		{"/reframe", "resolution=RESOLUTION_512_1536", "", ""},
		{
			"/describe",
			"",
			"",
			"",
		},
		{"/describe", "-image_file", "image_file", required},
		{"/describe", "describe_model_version=V_2", "", ""},
		{"/describe", "describe_model_version=V_1", "describe_model_version", "must be one of V_2, V_3"},
		{
			"/upscale",
			"",
			"",
			"",
		},
		{"/upscale", "-image_file", "image_file", required},
		{"/upscale", "-image_request", "image_request", required},
		{
			"/upscale",
			`image_request={"resemblance":1,"detail":100,"prompt":"","num_images":2,"seed":1,"magic_prompt_version":"V_0_8"}`,
			"",
			"",
		},
		{
			"/upscale",
			`image_request={"resemblance":0}`,
			"image_request.resemblance",
			weights,
		},
		{"/upscale", `image_request={"detail":101}`, "image_request.detail", weights},

		{"/v1/imagegen-v3/generate", "-prompt", "prompt", required},
		{
			"/v1/imagegen-v3/generate",
			"negative_prompt=dogs",
			"",
			"",
		},
		{"/v1/imagegen-v3/generate", "resolution=1024x768", "", ""},
		{
			"/v1/imagegen-v3/generate",
			"resolution=1024x768|aspect_ratio=1x1",
			"aspect_ratio",
			"cannot be combined with resolution",
		},
		{"/v1/imagegen-v3/generate", "style_reference_images@8x8|style_reference_images@9x9", "", ""},
		{"/v1/imagegen-v3/generate", "style_reference_images=text", "style_reference_images", noFile},
		{
			"/v1/imagegen-v3/generate",
			"style_codes=0a1b2c3d|style_codes=FFFFFFFF",
			"",
			"",
		},
		{"/v1/imagegen-v3/generate", `style_codes=["0a1b2c3d"]`, "", ""},
		{"/v1/imagegen-v3/generate", "style_codes=xyz", "style_codes", "must be style codes of 8 hexadecimal digits"},
		{
			"/v1/imagegen-v3/generate",
			"style_codes=0a1b2c3d|style_type=AUTO",
			"style_codes",
			"cannot be combined with style_type",
		},
		{
			"/v1/imagegen-v3/generate",
			"style_codes=0a1b2c3d|style_reference_images@8x8",
			"style_codes",
			"cannot be combined with style_reference_images",
		},
		{
			"/v1/imagegen-v3/generate",
			`color_palette={"name":"EMBER"}`,
			"",
			"",
		},
		{"/v1/imagegen-v3/generate", "color_palette=EMBER", "color_palette", "must be a JSON object"},
		{"/v1/imagegen-v3/generate", `color_palette={"Members":[]}`, "color_palette",
			`must be a JSON object in which "Members" is written "members"`},
		{"/v1/imagegen-v3/generate", "character_reference_images@8x8", "", ""},
		{
			"/v1/imagegen-v3/remix",
			"-image",
			"image",
			required,
		},
		{"/v1/imagegen-v3/remix", "image=text|-image", "image", noFile},
		{
			"/v1/imagegen-v3/remix",
			"image_weight=1",
			"",
			"",
		},
		{"/v1/imagegen-v3/remix", "image_weight=101", "image_weight", weights},
		{"/v1/imagegen-v3/edit", "-image", "image", required},
		{"/v1/imagegen-v3/edit", "-mask", "mask", required},
		{"/v1/imagegen-v3/edit", "mask@1x1", "mask", "must have the dimensions of the image, 40x30, and has 1x1"},
		{"/v1/imagegen-v3/edit", "aspect_ratio=1x1|negative_prompt=dogs", "", ""},
		{
			"/v1/imagegen-v3/replace-background",
			"-image",
			"image",
			required,
		},
		{"/v1/imagegen-v3/replace-background", "-prompt", "prompt", required},
		{
			"/v1/imagegen-v3/reframe",
			"",
			"",
			"",
		},
		{"/v1/imagegen-v3/reframe", "-resolution", "resolution", required},
		{"/v1/imagegen-v3/reframe", "-image", "image", required},
		{
			"/v1/imagegen-v3/reframe",
			"rendering_speed=FLASH",
			"rendering_speed",
			"must be one of TURBO, DEFAULT, QUALITY",
		},
	}
	for _, name := range v3 {
		path := "/v1/imagegen-v3/" + name
		rows = append(
			rows,
			row{path, "", "", ""},
			row{
				path,
				"rendering_speed=TURBO",
				"",
				"",
			},
			row{path, "rendering_speed=DEFAULT", "", ""},
			row{path, "rendering_speed=QUALITY", "", ""},
			row{path, "rendering_speed=FLASH", "rendering_speed", "must be one of TURBO, DEFAULT, QUALITY"},
			row{path, "rendering_speed=BALANCED", "rendering_speed", "must be one of TURBO, DEFAULT, QUALITY"},
			row{
				path,
				"num_images=1",
				"",
				"",
			},
			row{path, "num_images=8", "", ""},
			row{path, "num_images=0", "num_images", numbers},
			row{path, "num_images=9", "num_images", numbers},
			row{path, "seed=0", "", ""},
			row{path, "seed=2147483648", "seed", seeds},
			row{path, "magic_prompt=OFF", "", ""},
			row{path, "magic_prompt=NO", "magic_prompt", magics},
			row{path, "style_type=DESIGN", "", ""},
			row{path, "style_type=FICTION", "", ""},
			row{
				path,
				"style_type=ANIME",
				"style_type",
				"must be one of AUTO, GENERAL, REALISTIC, DESIGN, FICTION, CUSTOM, STYLIZED",
			},
			row{path, "prompt=", "prompt", "must not be empty"},
			row{path, "prompt=a|prompt=b", "prompt", twice},
		)
		if name == "replace-background" {
			rows = append(rows, row{path, "aspect_ratio=not a field of this route", "", ""})
			continue
		}
		for _, a := range strings.Split(strings.TrimPrefix(ratios, "must be one of "), ", ") {
			rows = append(rows, row{path, "aspect_ratio=" + a, "", ""})
		}
		rows = append(rows, row{path, "aspect_ratio=16:9", "aspect_ratio", ratios},
			row{path, "aspect_ratio=ASPECT_16_9", "aspect_ratio", ratios})
	}
	for _, tt := range rows {
		in, err := form(t, tt.path, replaced(whole[tt.path], tt.parts)...)
		if param, rule := verdict(t, tt.path, in, err); param != tt.param || rule != tt.rule {
			t.Errorf("%s with %s: got %q %q, want %q %q", tt.path, tt.parts, param, rule, tt.param, tt.rule)
		}
	}
}

func replaced(parts []string, changes string) []string {
	name := func(part string) string { return part[:strings.IndexAny(part+"=", "=@")] }
	gone := map[string]bool{}
	var added []string
	for change := range strings.SplitSeq(changes, "|") {
		if change == "" {
			continue
		}
		gone[strings.TrimPrefix(name(change), "-")] = true
		if change[0] != '-' {
			added = append(added, change)
		}
	}
	var out []string
	for _, p := range parts {
		if !gone[name(p)] {
			out = append(out, p)
		}
	}
	return append(out, added...)
}

// One reference may be as large as a file may be, and so may all together.
func TestReferencesHaveABoundTogether(t *testing.T) {
	big := &picture.File{MediaType: "image/png", Size: 6 << 20}
	r := route(t, "/v1/imagegen-v3/generate")
	in, err := r.FromForm([]imagegen.Text{{Name: "prompt", Value: "x"}},
		[]picture.Attachment{{Name: "style_reference_images", File: big}, {Name: "style_reference_images", File: big}})
	if param, rule := verdict(t, r.Path, in, err); param != "style_reference_images" ||
		!strings.Contains(rule, "not be larger than 10 MiB") {
		t.Errorf("got %q %q", param, rule)
	}
}

func TestJSONOfTheThirdGeneration(t *testing.T) {
	for body, want := range map[string]string{
		`{"prompt":"a","num_images":2,"style_codes":["0a1b2c3d"],"color_palette":{"name":"EMBER"}}`: "",
		`{"prompt":"a","num_images":"2"}`:               "num_images",
		`{"prompt":"a","style_reference_images":["x"]}`: "style_reference_images",
		`{"prompt":"a","style_codes":[7]}`:              "style_codes",
	} {
		in, err := route(t, "/v1/imagegen-v3/generate").FromJSON([]byte(body))
		if param, _ := verdict(t, "/v1/imagegen-v3/generate", in, err); param != want {
			t.Errorf("%s: got %q, want %q", body, param, want)
		}
	}
}

func FuzzDocument(f *testing.F) {
	f.Add(`{"prompt":"a","aspect_ratio":"ASPECT_1_1","seed":1,"style_codes":["0a1b2c3d"]}`)
	f.Add(`{"prompt":"a","num_images":8,"color_palette":{"members":[]}}`)
	f.Fuzz(func(t *testing.T, document string) {
		for _, path := range []string{"/remix", "/upscale"} {
			in, err := route(t, path).FromForm([]imagegen.Text{{Name: "image_request", Value: document}},
				[]picture.Attachment{
					{Name: "image_file", File: &picture.File{MediaType: "image/png", Width: 1, Height: 1, Size: 1}},
				})
			if err != nil || route(t, path).Check(in) != nil {
				continue
			}
			r := route(t, path).Decode(in)
			if r.N < 1 || r.N > 8 || r.Seed != nil && (*r.Seed < 0 || *r.Seed > 1<<31-1) {
				t.Fatalf("%s became %+v", document, r)
			}
			if _, err := imagegen.Shape.Encode(t.Context(), r, r.Model, new(dialogue.Report)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
