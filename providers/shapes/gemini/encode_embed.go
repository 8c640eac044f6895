package gemini

import (
	"strings"

	"github.com/go-json-experiment/json"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/shapes"
	vocabulary "stagedoor/providers/tokens"
	"stagedoor/providers/vector"
)

// maxEmbedded is the vendor's limit of inputs in one call. Larger requests are split.
const maxEmbedded = 100

// Batch implements vector.Outbound.
func (embedder) Batch(r *vector.Request, from int) vector.Batch {
	return vector.Batch{From: from, To: min(from+maxEmbedded, len(r.Inputs))}
}

// Encode implements vector.Outbound. Each input of a batch names the model, which must be that of the path.
func (embedder) Encode(r *vector.Request, b vector.Batch, model string, rep *dialogue.Report) (shapes.Call, error) {
	own := r.Inbound == Name
	renamed := r.Model != strings.TrimPrefix(model, "models/")
	c := shapes.Call{Path: modelPath(model) + ":" + batchEmbedContents, Body: r.Body}
	name := strings.TrimPrefix(modelPath(model), "/v1beta/")
	switch {
	case own && r.Single:
		c.Path = modelPath(model) + ":" + embedContent
		if renamed {
			c.Body = nameModel(r.Body, name)
		}
		return c, nil
	case own && b.Whole(r) && !renamed:
		return c, nil
	}
	w := jsonw.Writer{}
	w.Object().Key("requests").Array()
	for i := b.From; i < b.To; i++ {
		if own {
			w.Raw(nameModel(r.Inputs[i].Raw, name))
		} else if err := writeInput(&w, r, i, name); err != nil {
			return c, err
		}
	}
	c.Body = w.End().End().Buf
	if !own {
		for _, lost := range r.Lost {
			rep.Lose(lost)
		}
	}
	return c, nil
}

// nameModel returns a request with its model replaced, or as it is if it names none.
func nameModel(request []byte, model string) []byte {
	var edits []fields.Edit
	for _, m := range fields.Members(request) {
		if camel(m.Name) == "model" {
			edits = append(edits, fields.Edit{Start: m.Value, End: m.End, With: jsonw.AppendString(nil, model)})
		}
	}
	return fields.Splice(request, edits)
}

// taskTypes are the shape's words for the purposes of vectors.
var taskTypes = map[vector.Purpose]string{
	vector.Query: "RETRIEVAL_QUERY", vector.Document: "RETRIEVAL_DOCUMENT", vector.Similarity: "SEMANTIC_SIMILARITY",
	vector.Classification: "CLASSIFICATION", vector.Clustering: "CLUSTERING",
}

// writeInput writes an input of another shape. Upstreams of this one take no lists of tokens, so tokens of the
// vocabulary cl100k_base are sent as the text that they stand for, and any others are an error.
func writeInput(w *jsonw.Writer, r *vector.Request, i int, model string) error {
	in := &r.Inputs[i]
	w.Object().Key("model").String(model)
	w.Key("content").Object().Key("parts").Array().Object().Key("text")
	if in.Tokens == nil {
		w.Raw(in.Text)
	} else {
		var ids []uint
		if err := json.Unmarshal(in.Tokens, &ids); err != nil {
			return dialogue.Invalid("input", "must have tokens that are whole numbers")
		}
		text, err := vocabulary.Decode(ids)
		if err != nil {
			return dialogue.Invalid("input",
				"must have only tokens of the vocabulary cl100k_base, because the provider "+
					"of this model takes only text")
		}
		w.String(text)
	}
	w.End().End().End()
	if t := taskTypes[in.Purpose]; t != "" {
		w.Key("taskType").String(t)
	}
	if in.Title != "" {
		w.Key("title").String(in.Title)
	}
	if in.Dimensions > 0 {
		w.Key("outputDimensionality").Int(in.Dimensions)
	}
	w.End()
	return nil
}
