package sandbox_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/embeddings"
	"stagedoor/providers/shapes/registry"
	"stagedoor/providers/vector"
	"stagedoor/test/sizes"
)

// embed returns the vectors of the simulator for texts.
func embed(t *testing.T, texts ...string) (vectors [][]float32) {
	t.Helper()
	body := `{"model":"m","input":[`
	for i, text := range texts {
		if i > 0 {
			body += ","
		}
		body += strconv.Quote(text)
	}
	r, err := embeddings.Dialect.Check([]byte(body+"]}"), shapes.Params{})
	if err != nil {
		t.Fatal(err)
	}
	m := sandbox.Model{Env: dialoguetest.NewEnv(1_700_000_000, "made")}
	source, usage, err := m.Embed(t.Context(), r, http.Header{})
	if err != nil || usage.InputTotal < int64(len(texts)) {
		t.Fatalf("%+v, %v", usage, err)
	}
	for i := range texts {
		raw, err := source(nil, i)
		if err != nil {
			t.Fatal(err)
		}
		v, err := vector.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, v)
	}
	return vectors
}

// TestALongListOfTokensTakesNoMemoryForEach: the simulator looks at the first tokens only.
func TestALongListOfTokensTakesNoMemoryForEach(t *testing.T) {
	body := []byte(`{"model":"m","input":[` + strings.Repeat("1,", 4<<20) + `1]}`)
	r, err := embeddings.Dialect.Check(body, shapes.Params{})
	if err != nil {
		t.Fatal(err)
	}
	m := sandbox.Model{Env: dialoguetest.NewEnv(1_700_000_000, "made")}
	cost := sizes.Measure(0, func() {
		source, _, err := m.Embed(t.Context(), r, http.Header{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := source(nil, 0); err != nil {
			t.Fatal(err)
		}
	})
	if cost.Peak > 2*int64(len(body)) {
		t.Errorf("%d bytes of memory for a list of %d bytes", cost.Peak, len(body))
	}
}

// TestVectorsOfTheSimulatorFollowFromTheirTexts checks length and similarity, which is the dot product.
func TestVectorsOfTheSimulatorFollowFromTheirTexts(t *testing.T) {
	dot := func(a, b []float32) (sum float64) {
		for i := range a {
			sum += float64(a[i]) * float64(b[i])
		}
		return sum
	}
	v := embed(t, "a red fox runs", "a red fox sleeps", "stock prices fell", "a red fox runs")
	if len(v[0]) != 1536 || dot(v[0], v[0]) < 0.9999 || dot(v[0], v[0]) > 1.0001 || dot(v[0], v[3]) < 0.9999 {
		t.Errorf("%d numbers, %g with itself, %g with the same text", len(v[0]), dot(v[0], v[0]), dot(v[0], v[3]))
	}
	if near, far := dot(v[0], v[1]), dot(v[0], v[2]); near < 0.5 || far > 0.2 {
		t.Errorf("%g with three of four words in common, %g with none", near, far)
	}
}

// TestTheSimulatorServesEmbeddingsInBothDialects over HTTP, with errors and faults, and leaves other paths alone.
func TestTheSimulatorServesEmbeddingsInBothDialects(t *testing.T) {
	m := sandbox.Model{Env: dialoguetest.NewEnv(1_700_000_000, "made")}
	h := m.EmbedHandler(registry.Embeddings, http.NotFoundHandler())
	const one = `{"content":{"parts":[{"text":"a"}]},"outputDimensionality":2}`
	for _, tt := range []struct {
		path, body, fault string
		status            int
		has               string
	}{
		{"/v1/embeddings", `{"model":"m","input":"a","dimensions":2}`, "", 200, `"index":0,"embedding":[`},
		{"/v1beta/models/m:embedContent", one, "", 200, `{"embedding":{"values":[`},
		{"/v1/embeddings", `{"model":"m","input":""}`, "", 400, `{"error":{"message":"input: must not be empty"`},
		{"/v1/embeddings", `{`, "", 400, `"code":"invalid_json"`},
		{"/v1beta/models/m:embedContent", one, "status=429 retry-after=3s", 429, `"status":"RESOURCE_EXHAUSTED"`},
		{"/v1beta/models/m:embedContent", one, "garbage", 200, "502 Bad Gateway"},
		{"/v1beta/models/m:generateContent", `{}`, "", 404, ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, tt.path, strings.NewReader(tt.body))
		r.Header.Set(sandbox.Header, tt.fault)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.has) {
			t.Errorf("%s %s %s: got %d %s", tt.path, tt.body, tt.fault, w.Code, w.Body)
		}
	}
}
