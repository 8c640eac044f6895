package chunks

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
)

// MaxChoices is the largest n of either shape (gateway.md 8).
const MaxChoices = 128

// Field reads a request's field that both shapes have and mean alike. It reports
// whether the name is one of those.
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
		req.LogitBias = json.RawMessage(v.Raw)
	default:
		return false
	}
	return true
}

// Integer is a number that Check has found whole, also as 1e3 or 5.0.
func Integer(v gjson.Result) *int64 {
	n := v.Int()
	if strings.ContainsAny(v.Raw, ".eE") {
		n = int64(v.Num)
	}
	return &n
}
