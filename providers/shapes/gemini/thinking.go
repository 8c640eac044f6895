package gemini

import (
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
)

// Thinking budgets in tokens (translation.md 4.5) and what the 2.5 models take.
const (
	budgetLow     = 1024
	budgetMedium  = 8192
	budgetHigh    = 24576
	budgetAuto    = -1
	maxBudget     = 24576
	minBudgetLite = 512
	minBudgetPro  = 128
	maxBudgetPro  = 32768
)

// Budgets of other shapes as levels: below low, below medium, else high.
const (
	belowLow    = 4096
	belowMedium = 16384
)

// thinking writes thinkingConfig in the form that the model takes.
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
		if wanted(r) {
			e.rep.Lose("reasoning")
		}
		return
	}
	if e.shown() {
		config.Key("includeThoughts").Bool(true)
	}
	config.End()
	if len(config.Buf) > len("{}") {
		w.Key("thinkingConfig").Raw(config.Buf)
	}
}

func off(r dialogue.Reasoning) bool { return r.Disabled || r.Effort == "none" }

// wanted reports whether the client asked for thinking, or for its depth.
func wanted(r dialogue.Reasoning) bool {
	return !off(r) && (r.Effort != "" || r.Budget != nil || r.Adaptive)
}

// shown reports whether the client gets to see thoughts.
func (e *encoder) shown() bool {
	r := e.req.Reasoning
	if off(r) {
		return false
	}
	return r.Include || r.Summary != "" || e.req.Traits.ShowsThoughts && wanted(r)
}

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

func budgetOf(effort string) int64 {
	switch effort {
	case "minimal", "low":
		return budgetLow
	case "medium":
		return budgetMedium
	}
	return budgetHigh
}

// clamped keeps a budget within what the model takes. Pro models cannot stop
// thinking.
func (e *encoder) clamped(n int64) int64 {
	low, high := int64(0), int64(maxBudget)
	switch model := e.target.Model; {
	case strings.Contains(model, "pro"):
		low, high = minBudgetPro, maxBudgetPro
	case n > 0 && strings.Contains(model, "lite"):
		low = minBudgetLite
	}
	fit := min(max(n, low), high)
	if fit != n {
		e.rep.Lose("reasoning:budget")
	}
	return fit
}

// level returns the thinkingLevel; "" leaves the choice to the model.
func (e *encoder) level() string {
	r := e.req.Reasoning
	flash := strings.Contains(e.target.Model, "flash")
	switch {
	case off(r):
		e.rep.Lose("reasoning:none")
		return least(flash)
	case r.Effort != "":
		return levelOf(r.Effort, flash || !strings.Contains(e.target.Model, "gemini-3-pro"), flash)
	case r.Budget == nil:
		return ""
	case *r.Budget < belowLow:
		return "LOW"
	case *r.Budget < belowMedium:
		return levelOf("medium", flash || !strings.Contains(e.target.Model, "gemini-3-pro"), flash)
	}
	return "HIGH"
}

// least returns the least thinking a model can do: only the flash models know MINIMAL.
func least(flash bool) string {
	if flash {
		return "MINIMAL"
	}
	return "LOW"
}

// levelOf spells an effort. The first pro model of the generation has no MEDIUM.
func levelOf(effort string, medium, flash bool) string {
	switch effort {
	case "minimal":
		return least(flash)
	case "low":
		return "LOW"
	case "medium":
		if medium {
			return "MEDIUM"
		}
	}
	return "HIGH"
}
