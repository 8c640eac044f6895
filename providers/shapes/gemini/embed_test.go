package gemini_test

import (
	"errors"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/gemini"
	"stagedoor/providers/vector"
)

const (
	onePath  = "/v1beta/models/m:embedContent"
	manyPath = "/v1/models/m:batchEmbedContents"
)

func TestInputsOfEmbeddingsAreReadInEverySpelling(t *testing.T) {
	for body, path := range map[string]string{
		`{"content":{"parts":[{"text":"a"},{"text":"b"}]},"taskType":"CLUSTERING","outputDimensionality":"3"}`: onePath,
		`{"requests":[{"model":"models/m","content":{"parts":[{"text":"a"},{"text":"b"}]},"output_dimensionality":9,` +
			`"embed_content_config":{"output_dimensionality":3,"task_type":"CLUSTERING"}}]}`: manyPath,
	} {
		r, err := gemini.Embeddings.Check([]byte(body), shapes.Params{Path: path, Model: "m"})
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if in := r.Inputs[0]; string(in.Text) != `"a\nb"` || in.Dimensions != 3 || r.Single != (path == onePath) ||
			strings.Join(r.Lost, ",") != "taskType" {
			t.Errorf("%s: got %+v", body, r)
		}
	}
}

func TestRulesOfEmbeddingsNameTheField(t *testing.T) {
	many := strings.Repeat(`{"content":{"parts":[{"text":"a"}]}},`, vector.MaxInputs)
	for body, want := range map[string][2]string{
		`{}`:                                  {onePath, "content"},
		`{"content":{"parts":[]}}`:            {onePath, "content.parts"},
		`{"content":{"parts":[{"text":""}]}}`: {onePath, "content.parts"},
		`{"content":"a"}`:                     {onePath, "content.parts"},
		`{"content":{"parts":[{"text":1}]}}`:  {onePath, "content.parts.0.text"},
		`{"content":{"parts":["a"]}}`:         {onePath, "content.parts.0"},
		`{"content":{"parts":[{"text":"a"}]},"outputDimensionality":0}`:          {onePath, "outputDimensionality"},
		`{"content":{"parts":[{"text":"a"}]},"taskType":1}`:                      {onePath, "taskType"},
		`{"content":{"parts":[{"text":"a"}]},"embedContentConfig":1}`:            {onePath, "embedContentConfig"},
		`{"content":{"parts":[{"text":"a"}]},"embedContentConfig":{"title":[]}}`: {onePath, "embedContentConfig.title"},
		`{"model":"models/other","content":{"parts":[{"text":"a"}]}}`:            {onePath, "model"},
		`{"content":{}}`:                {manyPath, "requests"},
		`{"requests":{}}`:               {manyPath, "requests"},
		`{"requests":[]}`:               {manyPath, "requests"},
		`{"requests":[1]}`:              {manyPath, "requests.0"},
		`{"requests":[{}]}`:             {manyPath, "requests.0.content"},
		`{"requests":[` + many + `{}]}`: {manyPath, "requests"},
	} {
		_, err := gemini.Embeddings.Check([]byte(body), shapes.Params{Path: want[0], Model: "m"})
		var bad *dialogue.Error
		if !errors.As(err, &bad) || bad.Status != 400 || bad.Param != want[1] {
			t.Errorf("%.70s: got %v, want 400 that names %s", body, err, want[1])
		}
	}
}

// TestEmbeddingsOfTheShapeKeepTheirBytes changes only the model's name, also where a batch is divided.
func TestEmbeddingsOfTheShapeKeepTheirBytes(t *testing.T) {
	const one = `{ "x":1.0,"content":{"parts":[{"text":"a"}]},"model":"models/m"}`
	body := `{"requests":[` + strings.Repeat(one+",", 149) + one + `], "y":null}`
	r, err := gemini.Embeddings.Check([]byte(body), shapes.Params{Path: manyPath, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	second := gemini.Embeddings.Batch(r, 100)
	if first := gemini.Embeddings.Batch(r, 0); first.To != 100 || second.To != 150 {
		t.Fatalf("divided at %d and %d", first.To, second.To)
	}
	renamed := strings.ReplaceAll(one, "models/m", "models/up")
	for _, tt := range []struct {
		batch vector.Batch
		model string
		want  string
	}{
		{vector.Batch{To: 150}, "m", body},
		{second, "up", `{"requests":[` + strings.Repeat(renamed+",", 49) + renamed + `]}`},
	} {
		call, err := gemini.Embeddings.Encode(r, tt.batch, tt.model, nil)
		if err != nil || string(call.Body) != tt.want || call.Path != "/v1beta/models/"+tt.model+":batchEmbedContents" {
			t.Errorf("got %s %.80s, %v", call.Path, call.Body, err)
		}
	}
	single, err := gemini.Embeddings.Check([]byte(one), shapes.Params{Path: onePath, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	call, err := gemini.Embeddings.Encode(single, vector.Batch{To: 1}, "up", nil)
	if err != nil || string(call.Body) != renamed || call.Path != "/v1beta/models/up:embedContent" {
		t.Errorf("got %s %s, %v", call.Path, call.Body, err)
	}
}

// TestTokensAreDecodedForUpstreamsWithoutThem also writes what a vector is for.
func TestTokensAreDecodedForUpstreamsWithoutThem(t *testing.T) {
	in := vector.Input{Tokens: []byte(`[15339, 1917]`), Purpose: vector.Document, Title: "t", Dimensions: 5}
	r := &vector.Request{Model: "m", Inputs: []vector.Input{in}, Lost: []string{"truncate"}}
	var rep dialogue.Report
	call, err := gemini.Embeddings.Encode(r, vector.Batch{To: 1}, "up", &rep)
	const want = `{"requests":[{"model":"models/up","content":{"parts":[{"text":"hello world"}]},` +
		`"taskType":"RETRIEVAL_DOCUMENT","title":"t","outputDimensionality":5}]}`
	if err != nil || string(call.Body) != want || rep.Header() != "truncate" {
		t.Errorf("got %s, %v", call.Body, err)
	}
	r.Inputs[0].Tokens = []byte(`[2000000]`)
	var bad *dialogue.Error
	if _, err := gemini.Embeddings.Encode(r, vector.Batch{To: 1}, "up", &rep); !errors.As(err, &bad) ||
		bad.Param != "input" {
		t.Errorf("an unknown token: got %v, want 400 that names input", err)
	}
}

func TestRepliesWithVectorsAreRead(t *testing.T) {
	for body, n := range map[string]int{
		`{"embedding":{"values":[1,2]},"usageMetadata":{"promptTokenCount":4}}`:                             1,
		`{"embeddings":[{"values":[1]},{"shape":[1],"values":[2]}],"usageMetadata":{"promptTokenCount":4}}`: 2,
	} {
		reply, err := gemini.Embeddings.Decode([]byte(body), n)
		if err != nil || len(reply.Vectors) != n || reply.Usage.InputTotal != 4 {
			t.Errorf("%s: got %+v, %v", body, reply, err)
		}
	}
	for _, body := range []string{`{}`, `{"embeddings":[]}`, `{"embedding":{"values":"AA=="}}`,
		`{"embeddings":[{"values":[1]},{"values":[1]}]}`,
		`{"embeddings":[{"values":[]}]}`, `{"error":{"code":500,"message":"x"}}`, `{"embedding":{"values":[1]}`,
		`{"embeddings":1}`} {
		var bad *dialogue.Error
		if _, err := gemini.Embeddings.Decode([]byte(body), 1); !errors.As(err, &bad) || bad.Status < 500 {
			t.Errorf("%s: got %v, want an error of the upstream", body, err)
		}
	}
}
