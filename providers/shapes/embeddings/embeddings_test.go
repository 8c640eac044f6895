package embeddings_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/embeddings"
	"stagedoor/providers/vector"
)

func check(t *testing.T, body string) *vector.Request {
	t.Helper()
	r, err := embeddings.Dialect.Check([]byte(body), shapes.Params{})
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return r
}

func TestInputsAreReadInEveryForm(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m","input":"a"}`:          `"a"`,
		`{"model":"m","input":["a","b\""]}`:  `"a" "b\""`,
		`{"model":"m","input":[1, 2]}`:       `[1, 2]`,
		`{"model":"m","input":[[1],[ 2,3]]}`: `[1] [ 2,3]`,
		`{"user":null,"dimensions":null,"input":"a","encoding_format":null,"model":"m"}`: `"a"`,
	} {
		var got []string
		for _, in := range check(t, body).Inputs {
			got = append(got, string(in.Text)+string(in.Tokens))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %s", body, got, want)
		}
	}
	r := check(
		t,
		`{"model":"m","input":"a","encoding_format":"base64","dimensions":2,"input_type":"search_query",`+
			`"title":"t","truncate":"END","task":"x"}`,
	)
	if in := r.Inputs[0]; !r.Base64 || in.Dimensions != 2 || in.Purpose != vector.Query || in.Title != "t" ||
		strings.Join(r.Lost, ",") != "truncate,task" {
		t.Errorf("got %+v", r)
	}
}

// TestTheFirstBrokenRuleIsNamed breaks every rule of the shape.
func TestTheFirstBrokenRuleIsNamed(t *testing.T) {
	many := strings.Repeat(`"a",`, vector.MaxInputs) + `"a"`
	for body, param := range map[string]string{
		`{"input":"a"}`: "model", `{"model":"","input":"a"}`: "model", `{"model":7,"input":"a"}`: "model",
		`{"model":"` + strings.Repeat("x", 300) + `","input":"a"}`: "model",
		`{"model":"m"}`: "input", `{"model":"m","input":null}`: "input", `{"model":"m","input":""}`: "input",
		`{"model":"m","input":[]}`: "input", `{"model":"m","input":{}}`: "input",
		`{"model":"m","input":[` + many + `]}`: "input",
		`{"model":"m","input":["a",""]}`:       "input.1", `{"model":"m","input":["a",1]}`: "input.1",
		`{"model":"m","input":[1,"a"]}`: "input.1", `{"model":"m","input":[1,-1]}`: "input.1",
		`{"model":"m","input":[1.5]}`:    "input.0",
		`{"model":"m","input":[[1],[]]}`: "input.1", `{"model":"m","input":[[1,"a"]]}`: "input.0.1",
		`{"model":"m","input":[null]}`:             "input",
		`{"model":"m","input":"a","dimensions":0}`: "dimensions", `{"model":"m","input":"a",` +
			`"dimensions":"8"}`: "dimensions",
		`{"model":"m","input":"a","encoding_format":"int8"}`: "encoding_format",
		`{"model":"m","input":"a","title":1}`:                "title",
	} {
		var bad *dialogue.Error
		if _, err := embeddings.Dialect.Check([]byte(body), shapes.Params{}); !errors.As(err, &bad) ||
			bad.Status != 400 ||
			bad.Param != param {
			t.Errorf("%.60s: got %v, want 400 that names %s", body, err, param)
		}
	}
	if n := len(check(t, `{"model":"m","input":[`+strings.Repeat("1,", 8000)+`1]}`).Inputs); n != 1 {
		t.Errorf("a list of 8001 tokens has %d inputs", n)
	}
}

// TestARequestOfTheSameShapeKeepsItsBytes changes nothing but the model's name.
func TestARequestOfTheSameShapeKeepsItsBytes(t *testing.T) {
	const body = `{ "input" : [ "a" ],"extension":{"x":1.0}, "model":"mine" }`
	r := check(t, body)
	for model, want := range map[string]string{"mine": body, "up": strings.Replace(body, "mine", "up", 1)} {
		call, err := embeddings.Dialect.Encode(r, embeddings.Dialect.Batch(r, 0), model, nil)
		if err != nil || string(call.Body) != want || call.Path != "/embeddings" {
			t.Errorf("got %s %s, %v", call.Path, call.Body, err)
		}
	}
}

func TestCallsHaveOneNumberOfDimensions(t *testing.T) {
	r := &vector.Request{Model: "m", Lost: []string{"taskType"}, Inputs: []vector.Input{
		{
			Text: []byte(`"a"`),
		}, {Text: []byte(`"b"`), Dimensions: 3}, {Text: []byte(`"c"`), Dimensions: 3},
		{Media: "requests.3.content.parts.0"},
	}}
	var rep dialogue.Report
	var got []string
	for from := 0; from < 3; {
		b := embeddings.Dialect.Batch(r, from)
		call, err := embeddings.Dialect.Encode(r, b, "up", &rep)
		if err != nil {
			t.Fatal(err)
		}
		got, from = append(got, string(call.Body)), b.To
	}
	want := `{"model":"up","input":["a"],"encoding_format":"float"} {"model":"up","input":["b","c"],` +
		`"encoding_format":"float","dimensions":3}`
	if strings.Join(got, " ") != want || rep.Header() != "taskType" {
		t.Errorf("got %s, losses %s", got, rep.Header())
	}
	var bad *dialogue.Error
	if _, err := embeddings.Dialect.Encode(r, vector.Batch{From: 3, To: 4}, "up", &rep); !errors.As(err, &bad) ||
		bad.Param != r.Inputs[3].Media {
		t.Errorf("a picture: got %v, want 400 that names it", err)
	}
}

// TestRepliesAreReadInTheOrderOfTheInputs also covers vendors that report only the total.
func TestRepliesAreReadInTheOrderOfTheInputs(t *testing.T) {
	reply, err := embeddings.Dialect.Decode(
		[]byte(
			`{"data":[{"index":1,"embedding":[2]},{"embedding":"AA==","index":0}],"error":null,`+
				`"usage":{"total_tokens":5}}`,
		),
		2,
	)
	if err != nil || string(reply.Vectors[0]) != `"AA=="` || string(reply.Vectors[1]) != `[2]` ||
		reply.Usage.InputTotal != 5 {
		t.Fatalf("%+v, %v", reply, err)
	}
	for _, body := range []string{
		``, `[]`, `{}`, `{"data":{}}`, `{"data":[{"embedding":[1]}]}`,
		`{"data":[{"embedding":[1]},{"embedding":[1]},{"embedding":[1]}]}`,
		`{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`,
		`{"data":[{"embedding":[1]},{"embedding":null}]}`,
		`{"data":[{"embedding":[1]},{"embedding":[1]}`, `{"data":[1,2]}`,
		`{"data":[{"index":-1,"embedding":[1]},{"embedding":[1]}]}`,
		`{"error":{"message":"no"}}`,
	} {
		var bad *dialogue.Error
		if _, err := embeddings.Dialect.Decode([]byte(body), 2); !errors.As(err, &bad) || bad.Status < 500 {
			t.Errorf("%s: got %v, want an error of the upstream", body, err)
		}
	}
}

func TestTheDialectKnowsItsPaths(t *testing.T) {
	for path, want := range map[string]bool{"/v1/embeddings": true, "/embeddings": true,
		"/v1/chat/completions": false} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := embeddings.Dialect.Read(r); ok != want {
			t.Errorf("%s: %v", path, ok)
		}
	}
}
