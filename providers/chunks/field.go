package chunks

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// MaxChoices is the largest value of n in both shapes.
const MaxChoices = 128

// DecodeField reads a field that means the same in both shapes into req. It reports whether the
// name is one of those fields.
func DecodeField(req *dialogue.Request, name string, v gjson.Result) (known bool) {
	switch name {
	case "model":
		req.Model = v.String()
	case "stream":
		req.Stream = v.Bool()
	case "stream_options":
		req.IncludeUsage = v.Get("include_usage").Bool()
	case "temperature":
		req.Temperature = json.Number(v.Raw)
	case "top_p":
		req.TopP = json.Number(v.Raw)
	case "stop":
		req.Stop = StringList(v)
	case "seed":
		req.Seed = json.Number(v.Raw)
	case "presence_penalty":
		req.PresencePenalty = json.Number(v.Raw)
	case "frequency_penalty":
		req.FrequencyPenalty = json.Number(v.Raw)
	case "n":
		req.N = int(v.Num)
	case "logit_bias":
		req.LogitBias = fields.Raw(v)
	default:
		return false
	}
	return true
}

// Integer returns a number that Check has found to be an integer, also if it is written as 1e3
// or 5.0.
func Integer(v gjson.Result) *int64 {
	n := v.Int()
	if strings.ContainsAny(v.Raw, ".eE") {
		n = int64(v.Num)
	}
	return &n
}
