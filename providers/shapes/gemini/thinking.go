package gemini

import (
	"cmp"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
)

// Budgets in tokens for the words of effort, for models that take a budget. budgetAuto leaves the
// amount to the model.
const (
	budgetLow    = 1024
	budgetMedium = 8192
	budgetHigh   = 24576
	budgetAuto   = -1
)

// Budgets of other shapes as levels: below low, below medium, else high.
const (
	// belowLow and belowMedium are the budgets below which a model that takes levels gets LOW or
	// MEDIUM.
	belowLow    = 4096
	belowMedium = 16384
)

// thinking writes thinkingConfig in the form that the model takes: a budget for generation 2.5, a
// level from the third generation on.
func (e *encoder) thinking(w *jsonw.Writer) {
	r := e.req.Reasoning
	config := jsonw.Writer{}
	config.Object()
	switch e.target.Caps.Thinking {
	case dialogue.ThinkingBudget:
		if n, ok := e.budget(); ok {
			config.Key("thinkingBudget").Int(n)
		}
	case dialogue.ThinkingEffort:
		if level := e.level(); level != "" {
			config.Key("thinkingLevel").String(level)
		}
	default:
		e.rep.LoseIf(wanted(r), "reasoning")
		return
	}
	// Thoughts are part of the reply only on request here, so a client that reads them in its own shape must have them
	// asked for.
	if e.shown() {
		config.Key("includeThoughts").Bool(true)
	}
	config.End()
	if len(config.Buf) > len("{}") {
		w.Key("thinkingConfig").Raw(config.Buf)
	}
}

// off reports whether the client asked for no thinking.
func off(r dialogue.Reasoning) bool { return r.Disabled || r.Effort == "none" }

// wanted reports whether the client asked for thinking, or for its depth.
func wanted(r dialogue.Reasoning) bool {
	return !off(r) && (r.Effort != "" || r.Budget != nil || r.Adaptive)
}

// shown reports whether the client gets to see thoughts. In some shapes asking for thinking asks
// for that (Traits.ShowsThoughts).
func (e *encoder) shown() bool {
	r := e.req.Reasoning
	if off(r) {
		return false
	}
	return r.Include || r.Summary != "" || e.req.Traits.ShowsThoughts && wanted(r)
}

// budget returns the thinkingBudget. ok is false if the model's default applies.
func (e *encoder) budget() (int64, bool) {
	r := e.req.Reasoning
	switch {
	case off(r):
		return e.clamped(0), true
	case r.Budget != nil:
		return e.clamped(*r.Budget), true
	case r.Effort != "":
		return e.clamped(budgetOf(r.Effort)), true
	case r.Adaptive:
		return budgetAuto, true
	}
	return 0, false
}

// budgetOf returns the budget for a word of effort.
func budgetOf(effort string) int64 {
	switch effort {
	case "minimal", "low":
		return budgetLow
	case "medium":
		return budgetMedium
	}
	return budgetHigh
}

// clamped returns the budget within the model's bounds, and records a change. Models that cannot
// stop thinking get their minimum for 0.
func (e *encoder) clamped(n int64) int64 {
	caps := &e.target.Caps
	fit := n
	if n != 0 || caps.AlwaysThinks {
		fit = max(n, caps.MinBudget)
	}
	if fit = max(fit, 0); caps.MaxBudget > 0 {
		fit = min(fit, caps.MaxBudget)
	}
	e.rep.LoseIf(fit != n, "reasoning:budget")
	return fit
}

// level returns the thinkingLevel, or "" to leave the amount to the model. No model with levels can
// stop thinking, so the lowest level stands for that.
func (e *encoder) level() string {
	r := e.req.Reasoning
	switch {
	case off(r):
		e.rep.Lose("reasoning:none")
		return e.levelOf("minimal")
	case r.Effort != "":
		return e.levelOf(r.Effort)
	case r.Budget == nil:
		return ""
	case *r.Budget < belowLow:
		return "LOW"
	case *r.Budget < belowMedium:
		return e.levelOf("medium")
	}
	return "HIGH"
}

// levelOf returns the level for an effort. If the model lacks the level, it gets the next higher
// one.
func (e *encoder) levelOf(effort string) string {
	levels := cmp.Or(e.target.Caps.Levels, "LOW MEDIUM HIGH")
	switch word := strings.ToUpper(effort); word {
	case "MINIMAL", "MEDIUM":
		if strings.Contains(levels, word) {
			return word
		}
		if word == "MINIMAL" {
			return "LOW"
		}
	case "LOW":
		return word
	}
	return "HIGH"
}
