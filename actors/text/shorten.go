package text

import (
	"slices"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/tokens"
	"stagedoor/providers/upstream"
)

const (
	// maxShortened bounds the attempts with a shorter conversation.
	maxShortened = 6
	// cut is the share of a conversation that is kept if the upstream does not say how long it may be, and margin
	// the share of the limit that is aimed at if it does, because the gateway only estimates sizes.
	cut, margin = 0.6, 0.95
)

// shortened says which turns are left out of a request whose prompt was too long (truncation "auto").
type shortened struct {
	times int
	turns []bool // by their places; nil: none is left out
}

// more leaves out further turns, the oldest first, and reports whether there are any that can be left out. size has
// the upstream's own numbers, if it gives any.
func (s *shortened) more(req *dialogue.Request, size upstream.PromptSize) bool {
	if s.times++; s.times > maxShortened {
		return false
	}
	if s.turns == nil {
		s.turns = make([]bool, len(req.Turns))
	}
	keep := cut
	if room := size.Limit - size.Answer; size.Limit > 0 && room > 0 && size.Prompt > 0 {
		keep = min(margin*float64(room)/float64(size.Prompt), margin)
	}
	left := fixedTokens(req)
	for i := range req.Turns {
		if !s.turns[i] {
			left += tokens.EstimateParts(req.Turns[i].Parts)
		}
	}
	target := int64(keep * float64(left))
	dropped := false
	for _, unit := range droppable(req.Turns) {
		if left <= target {
			break
		}
		for _, i := range unit {
			if !s.turns[i] {
				s.turns[i], dropped = true, true
				left -= tokens.EstimateParts(req.Turns[i].Parts)
			}
		}
	}
	s.dropOrphans(req.Turns)
	return dropped
}

// dropOrphans leaves out results whose calls are left out, which can stand behind a later message of the user.
func (s *shortened) dropOrphans(turns []dialogue.Turn) {
	lost := map[string]bool{}
	for i := range turns {
		for _, p := range turns[i].Parts {
			if p.Call != nil { // a later call may have the id of an earlier one
				lost[p.Call.ID] = s.turns[i]
			}
			if p.Result != nil && lost[p.Result.CallID] {
				s.turns[i] = true
			}
		}
	}
}

// apply leaves the turns out of a request and records the loss.
func (s *shortened) apply(req *dialogue.Request, rep *dialogue.Report) {
	if s.turns == nil {
		return
	}
	rep.Lose("input:truncated")
	kept := make([]dialogue.Turn, 0, len(req.Turns))
	for i, t := range req.Turns {
		if !s.turns[i] {
			kept = append(kept, t)
		}
	}
	req.Turns = kept
}

// droppable divides a conversation into the units that can be left out, in the order in which they are: all exchanges
// but the last, then the steps of the last one but its own last. An exchange is a message of the user with all that
// follows it, so calls and results stay together. A step is what the model wrote at once, with the results of its
// calls. Messages of the system and the last message of the user always stay.
func droppable(turns []dialogue.Turn) [][]int {
	var exchanges, steps [][]int
	current, inStep := []int(nil), false
	for i := range turns {
		switch kind := authorOf(&turns[i]); kind {
		case bySystem:
			continue
		case byUser:
			if len(current) > 0 {
				exchanges = append(exchanges, current)
			}
			current, steps, inStep = []int{i}, nil, false
		default:
			current = append(current, i)
			if kind == byModel && !inStep || len(steps) == 0 {
				steps = append(steps, nil)
			}
			steps[len(steps)-1] = append(steps[len(steps)-1], i)
			inStep = kind == byModel
		}
	}
	return slices.Concat(exchanges, steps[:max(len(steps)-1, 0)])
}

// An author is the role that wrote a turn, with results of tools apart from messages.
type author uint8

const (
	byUser author = iota
	byModel
	byTool
	bySystem
)

// authorOf returns the author of a turn. A turn with a result counts as a tool's, although its role
// is the user's.
func authorOf(t *dialogue.Turn) author {
	if t.Role == dialogue.Assistant {
		return byModel
	}
	is := func(kind dialogue.PartKind) func(dialogue.Part) bool {
		return func(p dialogue.Part) bool { return p.Kind == kind }
	}
	switch {
	case slices.ContainsFunc(t.Parts, is(dialogue.ResultPart)), slices.ContainsFunc(t.Parts, is(dialogue.ServerPart)):
		return byTool
	case len(t.Parts) > 0 && t.Parts[0].Kind == dialogue.SystemPart:
		return bySystem
	}
	return byUser
}

// fixedTokens estimates what is sent beside the turns.
func fixedTokens(req *dialogue.Request) int64 {
	bytes := 0
	for i := range req.System {
		bytes += len(req.System[i].Text)
	}
	for i := range req.Tools {
		bytes += len(req.Tools[i].Description) + len(req.Tools[i].Schema)
	}
	return tokens.Estimate(bytes)
}
