package sandbox

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
	"stagedoor/providers/vector"
)

// Vectors have this many numbers if the request does not say how many. embeddedWords bounds how many words of an input
// count, because each costs a pass over all numbers.
const (
	defaultDimensions = 1536
	embeddedWords     = 64
	separators        = "\"[],. \t\n" // of words, and of token ids
)

// Embed is the Simulator of actors/embeddings. The vector of an input depends only on the model and the input, has
// length 1, and is near to those of inputs with the same words. Faults are ordered as for text, by the last input.
func (m *Model) Embed(ctx context.Context, r *vector.Request,
	header http.Header) (vector.Source, dialogue.Usage, error) {
	text, _ := dialogue.PromptText(r.Inputs[len(r.Inputs)-1].Text)
	p, err := m.newPlayer(ctx, header, text)
	if err == nil && p.script.Fault != NoFault {
		err = p.failure()
	}
	usage := dialogue.NoUsage
	if err != nil {
		return nil, usage, err
	}
	for i, in := range r.Inputs {
		if in.Dimensions > 2*defaultDimensions {
			return nil, usage, dialogue.Invalid("dimensions", "must not be more than 3072 in the sandbox")
		}
		if in.Tokens == nil && in.Media == "" && len(in.Text) <= len(`""`) {
			return nil, usage, dialogue.Invalid("input."+strconv.Itoa(i), "must not be empty")
		}
	}
	usage.InputTotal = r.CountTokens(vector.Batch{To: len(r.Inputs)})
	return func(dst []byte, i int) ([]byte, error) {
		if ctx.Err() != nil {
			return dst, context.Cause(ctx)
		}
		return r.Append(dst, embed(r.Model, &r.Inputs[i])), nil
	}, usage, nil
}

// embed adds up a direction for each word, and a small one for the whole input, so that no two inputs are the same.
func embed(model string, in *vector.Input) []float32 {
	whole := fields.TextOf(in.Text)
	if in.Tokens != nil {
		whole = fields.TextOf(in.Tokens)
	}
	left := embeddedWords
	if in.Media != "" {
		whole, left = fields.TextOf(in.Raw), 0
	}
	v := make([]float32, cmp.Or(in.Dimensions, defaultDimensions))
	addDirection(v, model, whole, 0.25)
	for word := range strings.FieldsFuncSeq(whole, func(c rune) bool { return strings.ContainsRune(separators, c) }) {
		if left--; left < 0 {
			break
		}
		addDirection(v, model, strings.ToLower(word), 1)
	}
	vector.Scale(v)
	return v
}

// addDirection adds a direction that depends on model and text.
func addDirection(v []float32, model, text string, weight float32) {
	h := fnv.New64a()
	for _, part := range []string{model, "\x00", text} {
		_, _ = io.WriteString(h, part) // a hash takes everything
	}
	r := rand.New(rand.NewPCG(h.Sum64(), 0))
	for i := range v {
		v[i] += weight * (2*r.Float32() - 1)
	}
}

// EmbedHandler serves embeddings in the dialects, as upstreams of their shapes do, and passes other requests to next.
func (m *Model) EmbedHandler(dialects []*vector.Dialect, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, d := range dialects {
			if in, ok := d.Read(r); ok && r.Method == http.MethodPost {
				switch err := m.writeEmbeddings(w, r, d, in); {
				case err == nil:
				case errors.Is(err, ErrGarbage):
					_, _ = io.WriteString(w, GarbageBytes) // an error means that the client has left
				default:
					refuse(w, d.Envelope, err)
				}
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// writeEmbeddings answers one request over HTTP. It has written nothing if it returns an error, except for a broken
// connection.
func (m *Model) writeEmbeddings(w http.ResponseWriter, r *http.Request, d *vector.Dialect, in shapes.Params) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil || !fields.ValidObject(body, d.Shape.Members) {
		return dialogue.InvalidJSON("must be one JSON object of at most 64 MiB")
	}
	q, err := d.Check(body, in)
	if err != nil {
		return err
	}
	source, usage, err := m.Embed(r.Context(), q, r.Header)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	return vector.Write(d, q, source, usage, nil, func(piece []byte, _ bool) error {
		_, err := w.Write(piece)
		return err
	})
}
