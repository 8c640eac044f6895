package vector_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes/embeddings"
	"stagedoor/providers/shapes/registry"
	"stagedoor/providers/vector"
)

// other is a dialect of another shape, whose upstreams leave cut vectors as they are.
func other(t *testing.T) *vector.Dialect {
	t.Helper()
	for _, d := range registry.Embeddings {
		if d.Shape.Name == dialoguetest.Gemini {
			return d
		}
	}
	t.Fatal("there is no other dialect")
	return nil
}

func request(dimensions int64, encoded bool) *vector.Request {
	return &vector.Request{Inbound: embeddings.Name, Base64: encoded, Inputs: []vector.Input{{Dimensions: dimensions}}}
}

// TestVectorsInTheSameFormKeepTheirBytes checks that a number is neither rounded nor written in another way.
func TestVectorsInTheSameFormKeepTheirBytes(t *testing.T) {
	const numbers, encoded = `[0.10000000000000000001, -1E-3,2]`, `"AACAPw=="`
	for raw, r := range map[string]*vector.Request{numbers: request(0, false), encoded: request(0, true)} {
		if got, err := r.Form([]byte("x"), 0, []byte(raw), other(t)); err != nil || string(got) != "x"+raw {
			t.Errorf("%s: got %s, %v", raw, got, err)
		}
	}
	if got, err := request(3, false).Form(nil, 0, []byte(numbers), embeddings.Dialect); err != nil ||
		string(got) != numbers {
		t.Errorf("a vector that its own upstream has cut: got %s, %v", got, err)
	}
}

// TestVectorsAreWrittenAsTheClientAsked converts lists of numbers to base64 of little-endian 32-bit floats and back.
func TestVectorsAreWrittenAsTheClientAsked(t *testing.T) {
	floats, encoded := `[1,-0.5,0.1]`, `"`+base64.StdEncoding.EncodeToString(
		[]byte("\x00\x00\x80\x3f\x00\x00\x00\xbf\xcd\xcc\xcc\x3d"),
	)+`"`
	if got, err := request(0, true).Form(nil, 0, []byte(floats), other(t)); err != nil || string(got) != encoded {
		t.Errorf("got %s, %v, want %s", got, err, encoded)
	}
	if got, err := request(0, false).Form(nil, 0, []byte(encoded), other(t)); err != nil || string(got) != floats {
		t.Errorf("got %s, %v, want %s", got, err, floats)
	}
}

// TestCutVectorsHaveLengthOne checks the dimensions that a client asked for, at an upstream that returns more numbers
// or does not scale them.
func TestCutVectorsHaveLengthOne(t *testing.T) {
	for raw, want := range map[string]string{`[3,4]`: `[0.6,0.8]`, `[3,4,12]`: `[0.6,0.8]`, `[0,0,1]`: `[0,0]`} {
		if got, err := request(2, false).Form(nil, 0, []byte(raw), other(t)); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", raw, got, err, want)
		}
	}
	var bad *dialogue.Error
	if _, err := request(3, false).Form(nil, 0, []byte(`[3,4]`), other(t)); !errors.As(err, &bad) || bad.Status != 502 {
		t.Errorf("a vector that is too short: got %v, want 502", err)
	}
}

// TestOnlyVectorsOfNumbersAreRead refuses what an upstream may send in place of a vector.
func TestOnlyVectorsOfNumbersAreRead(t *testing.T) {
	for _, raw := range []string{`null`, `{}`, `[]`, `[ ]`, `[null]`, `["1"]`, `[[1]]`, `[1,[2]]`, `7`, `""`} {
		if vector.IsVector([]byte(raw)) {
			t.Errorf("%s passes as a vector", raw)
		}
	}
	long := "[" + strings.Repeat("0,", vector.MaxDimensions) + "0]"
	for _, raw := range []string{`[1,,2]`, `[1e99]`, `[--1]`, `"????"`, `"AAA="`, long} {
		var bad *dialogue.Error
		if _, err := vector.Parse([]byte(raw)); !errors.As(err, &bad) || bad.Status != 502 {
			t.Errorf("%.20s: got %v, want 502", raw, err)
		}
	}
}

func TestScaledVectorsKeepTheirDirection(t *testing.T) {
	v := []float32{2, -1, 2}
	vector.Scale(v)
	if math.Abs(float64(v[0])-2.0/3) > 1e-6 || math.Abs(float64(v[1])+1.0/3) > 1e-6 {
		t.Errorf("got %v", v)
	}
	for _, kept := range [][]float32{{0, 0}, {float32(math.Inf(1)), 1}} {
		before := bytes.Clone(request(0, true).Append(nil, kept))
		if vector.Scale(kept); !bytes.Equal(before, request(0, true).Append(nil, kept)) {
			t.Errorf("a vector without a direction became %v", kept)
		}
	}
}

// watch passes a reply through a Tap in pieces of n bytes.
func watch(d *vector.Dialect, model, reply string, n int) (string, dialogue.Usage, *dialogue.Error) {
	tap := vector.NewTap(d, model)
	var out []byte
	for len(reply) > 0 {
		piece := reply[:min(n, len(reply))]
		reply = reply[len(piece):]
		var bad *dialogue.Error
		if out, bad = tap.Next(out, []byte(piece)); bad != nil {
			return string(out), tap.Usage(), bad
		}
	}
	return string(out), tap.Usage(), tap.End()
}

// TestRepliesPassAsTheyAre holds a reply in pieces of every size: its bytes stay, only the model's name is replaced,
// and the usage is learnt.
func TestRepliesPassAsTheyAre(t *testing.T) {
	const reply = ` {"object":"list", "data":[{"embedding":[0.10,-2e-1],"model":"x]}\"","index":0}],` +
		`"model" : "up\"stream\\" ,"usage":{"prompt_tokens":7,"total_tokens":7},"more":null}` + "\n"
	renamed := strings.Replace(reply, `"up\"stream\\"`, `"mine"`, 1)
	for n := 1; n <= len(reply); n++ {
		if got, usage, bad := watch(embeddings.Dialect, "", reply, n); bad != nil || got != reply ||
			usage.InputTotal != 7 {
			t.Fatalf("pieces of %d: got %s, %+v, %v", n, got, usage, bad)
		}
		if got, _, bad := watch(embeddings.Dialect, "mine", reply, n); bad != nil ||
			strings.TrimSpace(got) != strings.TrimSpace(
				strings.Replace(renamed, `"mine" ,`, `"mine",`, 1)) {
			t.Fatalf("pieces of %d: got %s, %v", n, got, bad)
		}
	}
}

// TestBrokenRepliesDoNotPass refuses a reply that is cut off, has no vectors or is not an object, before its end is
// sent.
func TestBrokenRepliesDoNotPass(t *testing.T) {
	const whole = `{"data":[{"embedding":[1]}]}`
	for reply, code := range map[string]string{
		"": "upstream_incomplete", whole[:len(whole)-1]: "upstream_incomplete", `{"data":["`: "upstream_incomplete",
		`[1]`: "upstream_invalid_response", `{"data":[}]`: "upstream_invalid_response",
		`x`:  "upstream_invalid_response",
		`{}`: "upstream_invalid_response", `{"data":null}`: "upstream_invalid_response",
		whole + `{}`: "upstream_invalid_response",
		`{{}}`:       "upstream_invalid_response", `{"data":` + strings.Repeat("[", 100): "upstream_invalid_response",
		`{"usage":"` + strings.Repeat("x", 100_000): "upstream_invalid_response",
	} {
		if _, _, bad := watch(embeddings.Dialect, "", reply, 5); bad == nil || bad.Code != code {
			t.Errorf("%.30s: got %v, want %s", reply, bad, code)
		}
	}
	_, _, bad := watch(embeddings.Dialect, "", `{"error":{"message":"no GPU"},"data":[]}`, 3)
	if bad == nil || bad.Message != "no GPU" {
		t.Errorf("an error in a reply: got %v", bad)
	}
}

// TestAReplyIsWrittenInPieces checks that a long reply is sent in pieces, the last of them after end was called.
func TestAReplyIsWrittenInPieces(t *testing.T) {
	r := &vector.Request{Model: "m", Inputs: make([]vector.Input, 100)}
	ended, pieces, whole := false, 0, []byte(nil)
	big := make([]float32, 2000)
	err := vector.Write(
		embeddings.Dialect,
		r,
		func(dst []byte, i int) ([]byte, error) { return r.Append(dst, big), nil },
		dialogue.Usage{InputTotal: 3},
		func() error { ended = true; return nil },
		func(piece []byte, last bool) error {
			if len(piece) > 80<<10 || last != ended {
				t.Errorf("a piece of %d bytes, last %v, ended %v", len(piece), last, ended)
			}
			pieces++
			whole = append(whole, piece...)
			return nil
		},
	)
	reply, decodeErr := embeddings.Dialect.Decode(whole, 100)
	if err != nil || decodeErr != nil || pieces < 5 || reply.Usage.InputTotal != 3 {
		t.Errorf("%d pieces, %v, %v", pieces, err, decodeErr)
	}
	failure := errors.New("failed")
	err = vector.Write(embeddings.Dialect, r, func(dst []byte, i int) ([]byte, error) { return dst, nil },
		dialogue.NoUsage, func() error { return failure },
		func([]byte, bool) error { t.Error("sent after a failed end"); return nil })
	if !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}

func TestTokensOfInputsAreCounted(t *testing.T) {
	r := &vector.Request{Inputs: []vector.Input{
		{Text: []byte(`"hello world"`)}, {Tokens: []byte(`[1, 2,3]`)}, {Media: "content.parts.0"},
	}}
	for to, want := range map[int]int64{1: 2, 2: 5, 3: 1505} {
		if got := r.CountTokens(vector.Batch{To: to}); got != want {
			t.Errorf("%d inputs: got %d tokens, want %d", to, got, want)
		}
	}
	r.Body = make([]byte, 40)
	if got := r.EstimateTokens(); got != 10 {
		t.Errorf("estimated %d", got)
	}
}
