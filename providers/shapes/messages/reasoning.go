package messages

import (
	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
)

// reasoning holds the settings of the model's thinking, in the vendor's words.
type reasoning struct {
	kind    string // type of thinking: enabled, adaptive, disabled; "": not sent
	budget  int64  // of enabled
	effort  string // of output_config; "": not sent
	display string // of adaptive; "": the model's default
}

func (r *reasoning) thinks() bool { return r.kind == "enabled" || r.kind == "adaptive" }

// write writes the setting of thinking, unless the model's default is meant.
func (r *reasoning) write(w *jsonw.Writer) {
	if r.kind == "" {
		return
	}
	w.Key("thinking").Object()
	w.Key("type").String(r.kind)
	if r.kind == "enabled" {
		w.Key("budget_tokens").Int(r.budget)
	}
	if r.display != "" {
		w.Key("display").String(r.display)
	}
	w.End()
}

// efforts maps the words for effort of all shapes to a budget in tokens, for models that want a
// number, and to the vendor's word, for models that want a word. The budgets are the gateway's own
// choice.
var efforts = map[string]struct {
	budget int64
	word   string
}{
	"minimal": {1024, "low"},
	"low":     {2048, "low"},
	"medium":  {8192, "medium"},
	"high":    {16384, "high"},
	"xhigh":   {24576, "xhigh"},
	"max":     {24576, "max"},
}

// dynamic is the effort for a model that needs a budget when the client leaves the amount to the
// model.
const dynamic = "medium"

// reasoning decides how the model thinks. forced says that a tool must be called. Thinking is
// switched on only if the client asked for it, because it costs tokens and changes the answer.
func (e *encoder) reasoning(forced bool, msgs []message) reasoning {
	asked := e.req.Reasoning
	wanted := asked.Adaptive || asked.Budget != nil && *asked.Budget != 0 || asked.Effort != "" &&
		asked.Effort != "none"
	if asked.Disabled || asked.Effort == "none" || asked.Budget != nil && *asked.Budget == 0 {
		wanted = false
	}
	switch e.target.Caps.Thinking {
	case dialogue.ThinkingNone:
		e.rep.LoseIf(wanted, "reasoning")
		return reasoning{}
	case dialogue.ThinkingBudget:
		return e.budgeted(wanted, forced, msgs)
	default:
		return e.adaptive(wanted, forced, msgs)
	}
}

// budgeted decides for models that think with a budget and do not think by default. The budget must
// be at least 1,024 tokens and below max_tokens, which it counts towards. A max_tokens that the
// gateway chose grows by the budget. One that the client gave stays, and the budget shrinks.
func (e *encoder) budgeted(wanted, forced bool, msgs []message) reasoning {
	if !wanted {
		return reasoning{}
	}
	if lost := thinkingConflict(forced, msgs); lost != "" {
		e.rep.Lose(lost)
		return reasoning{}
	}
	if unsigned(msgs) {
		e.rep.Lose("reasoning:history")
		return reasoning{}
	}
	budget, room := e.budget()
	if e.defaulted && e.maxTokens-budget < minBudget {
		e.maxTokens += budget
	}
	if e.maxTokens <= minBudget {
		e.rep.Lose("reasoning")
		return reasoning{}
	}
	return reasoning{kind: "enabled", budget: min(budget, max(minBudget, e.maxTokens-1-room))}
}

// budget returns the wanted number of thinking tokens, and how many of max_tokens must be left for
// the answer. A budget that the client gave is kept, and one that follows from an effort leaves a
// fifth.
func (e *encoder) budget() (tokens, room int64) {
	asked := e.req.Reasoning
	if asked.Budget != nil && *asked.Budget > 0 {
		e.rep.LoseIf(*asked.Budget < minBudget, "reasoning:raised")
		return max(*asked.Budget, minBudget), 0
	}
	effort, known := efforts[asked.Effort]
	if !known {
		effort = efforts[dynamic]
	}
	return effort.budget, e.maxTokens / 5
}

// adaptive decides for models that choose themselves how long to think. Some of them think by
// default and need an explicit parameter to stop, and some cannot stop: those get the lowest effort.
func (e *encoder) adaptive(wanted, forced bool, msgs []message) reasoning {
	asked := e.req.Reasoning
	if !wanted {
		switch off := asked.Disabled || asked.Effort == "none" || asked.Budget != nil; {
		case off && e.target.Caps.AlwaysThinks:
			e.rep.Lose("reasoning:none")
			return reasoning{effort: "low"}
		case off:
			return reasoning{kind: "disabled"}
		}
		return reasoning{}
	}
	r := reasoning{kind: "adaptive", effort: word(asked)}
	if asked.Include {
		r.display = "summarized"
	}
	if lost := thinkingConflict(forced, msgs); lost != "" {
		e.rep.Lose(lost)
		r.kind, r.display = "", ""
	}
	return r
}

// word returns the effort in the vendor's words, or "" if the model shall decide. A budget of
// tokens, which these models do not take, becomes the nearest effort.
func word(asked dialogue.Reasoning) string {
	if asked.Effort != "" {
		if known, ok := efforts[asked.Effort]; ok {
			return known.word
		}
		return asked.Effort // an open set (decisions.md, Errors)
	}
	switch {
	case asked.Budget == nil || *asked.Budget < 0:
		return ""
	case *asked.Budget < 4096:
		return "low"
	case *asked.Budget < 16384:
		return "medium"
	}
	return "high"
}

// thinkingConflict returns the loss for what the vendor does not allow together with thinking, a forced
// tool or a prefilled answer, or "" if nothing hinders.
func thinkingConflict(forced bool, msgs []message) string {
	switch {
	case forced:
		return "reasoning:tool_choice"
	case msgs[len(msgs)-1].role == dialogue.Assistant:
		return "reasoning:prefill"
	}
	return ""
}

// unsigned reports whether the model would go on with a tool loop that began without thinking.
// With a budget the vendor has one configuration for each answer, which begins after the user's
// last text. The message that begins it decides, whatever later steps have.
func unsigned(msgs []message) bool {
	if msgs[len(msgs)-1].blocks[0].kind != dialogue.ResultPart {
		return false
	}
	first := len(msgs) - 1
	for first >= 2 && msgs[first].blocks[0].kind == dialogue.ResultPart {
		first -= 2 // the sides alternate
	}
	return msgs[first+1].blocks[0].kind != dialogue.ThinkingPart
}
