package responses

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"stagedoor/providers/fields"
)

// frame is one event of a stream, read in one pass. An event has at most one member with content,
// under one of many names. value is that member.
type frame struct {
	kind    string
	itemID  string
	output  int // output_index, -1 is unknown
	content int // content_index
	summary int // summary_index
	value   gjson.Result
	logs    gjson.Result // logprobs
}

// readFrame reads an event. name comes from the event line and counts for servers whose data has no type.
func readFrame(name string, root gjson.Result) frame {
	f := frame{kind: name, output: -1}
	root.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "type":
			if v.Str != "" {
				f.kind = v.Str
			}
		case "item_id":
			f.itemID = v.Str
		case "output_index":
			f.output = int(v.Int())
		case "content_index":
			f.content = int(v.Int())
		case "summary_index":
			f.summary = int(v.Int())
		case "logprobs":
			f.logs = v
		case "delta", "text", "refusal", "arguments", "input", "item", "part", "annotation", "response":
			f.value = v
		}
		return true
	})
	return f
}

// eachElement visits the raw elements of a JSON array.
func eachElement(array json.RawMessage, visit func(element string)) {
	fields.View(array).ForEach(func(_, v gjson.Result) bool {
		visit(v.Raw)
		return true
	})
}
