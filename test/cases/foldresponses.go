package cases

import "maps"

// responsesDeltas names, per delta event, the member that sums it up.
var responsesDeltas = map[string]string{
	"response.output_text.delta":             "_text",
	"response.function_call_arguments.delta": "_args",
	"response.custom_tool_call_input.delta":  "_input",
	"response.reasoning_summary_text.delta":  "_reasoning",
	"response.reasoning_text.delta":          "_reasoning",
	"response.refusal.delta":                 "_refusal",
}

// responses folds a stream into the response of its last event, with what the deltas add up to beside each item.
func (f *folder) responses(events []Event) object {
	out := object{"_terminal": nil, "_error": nil}
	items := row{}
	empty := func() object { return object{} }
	for _, e := range events {
		d, kind := e.body(), e.kind()
		i := intOr(d["output_index"], -1)
		switch kind {
		case "response.completed", "response.incomplete", "response.failed":
			response := f.child(d, "response")
			maps.Copy(out, response)
			out["_terminal"] = kind
			if kind == "response.failed" {
				out["_error"] = firstFull(response["error"], object{"message": "failed"})
			}
		case "error":
			out["_terminal"] = firstFull(out["_terminal"], "error")
			out["_error"] = d["error"]
			if asObject(d["error"]) == nil {
				out["_error"] = object{"message": d["message"], "code": d["code"], "param": d["param"]}
			}
		case "response.output_item.added":
			items.at(i, func() object { return object{"_added": d["item"]} })
		case "response.output_item.done":
			items.at(i, empty)["_done"] = d["item"]
		default:
			if sum, ok := responsesDeltas[kind]; ok {
				f.join(items.at(i, empty), sum, d, "delta")
			}
		}
	}
	out["_items"] = items.sorted()
	return out
}
