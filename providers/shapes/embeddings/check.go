package embeddings

import (
	"math"
	"strconv"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
	"stagedoor/providers/vector"
)

// checker reads a request.
type checker struct {
	*fields.Reader
	request *vector.Request
	// given is set if the request has an input. dimensions, purpose and title apply to all inputs.
	given      bool
	dimensions int64
	purpose    vector.Purpose
	title      string
}

// Check implements vector.Inbound.
func (codec) Check(body []byte, _ shapes.Params) (*vector.Request, error) {
	c := checker{Reader: fields.NewReader(body), request: &vector.Request{Inbound: Name, Body: body}}
	defer c.Free()
	err := c.Object(func(name []byte) error { return c.member(string(name)) })
	r := c.request
	switch {
	case err != nil:
		return nil, err
	case r.Model == "":
		return nil, dialogue.Missing("model")
	case !c.given:
		return nil, dialogue.Missing("input")
	}
	for i := range r.Inputs {
		in := &r.Inputs[i]
		in.Dimensions, in.Purpose, in.Title = c.dimensions, c.purpose, c.title
	}
	return r, nil
}

// member reads one member. Clients write null for what they leave out. Members that only some upstreams of the shape
// know are lost for those of other shapes.
func (c *checker) member(name string) (err error) {
	if name != "model" && name != "input" && c.Null() {
		return nil
	}
	switch name {
	case "model":
		if c.request.Model, err = c.Text(); err == nil && c.request.Model == "" {
			return c.Broken("must not be empty")
		}
		if bad := dialogue.CheckModel("model", c.request.Model); bad != nil {
			return bad
		}
	case "input":
		c.given = true
		return c.input()
	case "encoding_format":
		var format string
		format, err = c.Word("float", "base64")
		c.request.Base64 = format == "base64"
	case "dimensions":
		c.dimensions, err = c.Int(1, math.MaxInt32)
	case "title":
		c.title, err = c.Text()
	case "input_type", "task":
		var word string
		if word, err = c.Text(); err != nil {
			return err
		}
		if known, ok := purposes[word]; ok {
			c.purpose = known
			break
		}
		fallthrough
	default:
		c.request.Lost = append(c.request.Lost, name)
	}
	return err
}

// purposes are the words of several vendors for the purposes of vectors.
var purposes = map[string]vector.Purpose{
	"query": vector.Query, "search_query": vector.Query, "retrieval.query": vector.Query,
	"document": vector.Document, "search_document": vector.Document, "retrieval.passage": vector.Document,
	"passage": vector.Document, "classification": vector.Classification,
	"clustering": vector.Clustering, "separation": vector.Clustering,
	"similarity": vector.Similarity, "text-matching": vector.Similarity,
}

// input reads the four forms of input: a string, a list of strings, a list of tokens, and a list of
// such lists. The texts and tokens are kept as they were written, so that nothing is decoded for an
// upstream of this shape.
func (c *checker) input() error {
	const rule = "must be a string, an array of strings or tokens, or an array of token arrays"
	inputs := &c.request.Inputs
	switch c.Peek() {
	case fields.String:
		return c.text()
	case fields.Array:
	default:
		return c.Broken(rule)
	}
	start, kind, n := c.Pos(), fields.Invalid, 0
	err := c.Array(func(i int) error {
		n = i + 1
		switch found := c.Peek(); {
		case i == 0:
			kind = found
		case found != kind:
			return c.Broken("must be of the same type as the elements before it")
		case kind != fields.Number && n > vector.MaxInputs:
			return dialogue.Invalid("input", "must not have more than "+strconv.Itoa(vector.MaxInputs)+" elements")
		}
		switch kind {
		case fields.String:
			return c.text()
		case fields.Number:
			return token(c.Reader)
		case fields.Array:
			return c.tokens()
		}
		return dialogue.Invalid("input", rule)
	})
	switch {
	case err != nil:
		return err
	case n == 0:
		return c.Broken("must not be empty")
	case kind == fields.Number:
		*inputs = append(*inputs, vector.Input{Tokens: c.request.Body[start:c.Pos()]})
	}
	return nil
}

// text adds a text. The vendor refuses an empty one.
func (c *checker) text() error {
	raw, err := c.Quoted()
	if err == nil && len(raw) <= len(`""`) {
		return c.Broken("must not be empty")
	}
	c.request.Inputs = append(c.request.Inputs, vector.Input{Text: raw})
	return err
}

// tokens adds a list of token ids.
func (c *checker) tokens() error {
	start, n := c.Pos(), 0
	err := c.Array(func(i int) error {
		n = i + 1
		return token(c.Reader)
	})
	if err == nil && n == 0 {
		return c.Broken("must not be empty")
	}
	c.request.Inputs = append(c.request.Inputs, vector.Input{Tokens: c.request.Body[start:c.Pos()]})
	return err
}

// token is the rule of a token id. Its upper bound is far above every vocabulary.
var token = fields.Whole(0, math.MaxInt32)
