package catalog

import (
	"cmp"
	"slices"

	"stagedoor/providers/dialogue"
)

// Need describes what a request for text needs of a target. The zero value needs nothing that a target could lack.
type Need struct {
	// Input and Output are the estimated tokens of the prompt, and those of the reply that the client asked for.
	Input, Output int64
	// Images, Files and Audio say which media the prompt has.
	Images, Files, Audio bool
	// Tools says that the model may call tools.
	Tools bool
	// Shortens says that the prompt may be shortened if a provider refuses it as too long.
	Shortens bool
}

// Skipped is a candidate that Select left out, with the condition that the request met there.
type Skipped struct {
	*Candidate
	Reason Conditions
}

// Selection is the part of a plan that can serve a request.
type Selection struct {
	// Plan has the candidates that are left, in the order of the plan. It is the given plan if none was left out, and
	// empty if the prompt fits none of them.
	Plan    []Candidate
	Skipped []Skipped
	// Largest is the largest context window of all candidates, if Plan is empty.
	Largest int64
}

// Select leaves those candidates out of a plan that cannot serve a request: those whose context window is smaller than
// the estimate, and those that cannot read the media in the prompt or call tools. Behind a candidate that was left out,
// an entry with conditions can only be the first one if it names the reason.
//
// Two guesses do not refuse a request. If no candidate can read the media or call tools, all are kept. If none has the
// window, a candidate that the configuration gives no window is kept if at least the prompt fits, because the built-in
// window may be outdated and some models cut their reply where the window ends. A request whose prompt may be shortened
// keeps its plan, too.
func Select(plan []Candidate, n Need) Selection {
	s := Selection{Plan: plan}
	if s.keep(OnUnsupported, func(c *Candidate) bool { return c.serves(n) }); len(s.Plan) == 0 {
		s = Selection{Plan: plan}
	}
	s.Skipped = slices.Clip(s.Skipped) // what is appended below belongs to one of the copies only
	readers := s
	if s.keep(OnContextLength, func(c *Candidate) bool { return c.Fits(n.Input + n.Output) }); len(s.Plan) > 0 {
		return s
	}
	if n.Shortens {
		return readers
	}
	for _, dropped := range s.Skipped {
		window, _ := dropped.ContextWindow()
		s.Largest = max(s.Largest, window)
	}
	last := readers
	if last.keep(OnContextLength, func(c *Candidate) bool {
		_, configured := c.ContextWindow()
		return !configured && c.Fits(n.Input)
	}); len(last.Plan) > 0 {
		return last
	}
	return s
}

// keep leaves out the candidates that are not suitable, for reason.
func (s *Selection) keep(reason Conditions, suitable func(c *Candidate) bool) {
	var kept []Candidate
	skipped := 0
	for i := range s.Plan {
		c := &s.Plan[i]
		if !suitable(c) {
			s.Skipped = append(s.Skipped, Skipped{c, reason})
			if skipped++; skipped == 1 {
				kept = append(kept, s.Plan[:i]...)
			}
			continue
		}
		if skipped > 0 && (len(kept) > 0 || c.On == 0 || c.On&reason != 0) {
			kept = append(kept, *c)
		}
	}
	if skipped > 0 {
		s.Plan = kept
	}
}

// ContextWindow returns the most tokens that prompt and reply of the model may have together, or 0 if that is not
// known. configured is false if it is a built-in fact.
func (c *Candidate) ContextWindow() (tokens int64, configured bool) {
	tokens = cmp.Or(c.overrides[1].window(), c.overrides[0].window())
	configured = tokens > 0
	if !configured && c.Provider.Shape != Sandbox { // the simulator takes prompts of any length
		tokens = c.Target(c.Provider.Shape).Caps.ContextWindow
	}
	return tokens, configured
}

// window returns the context window that is set, or 0. It may be called on nil.
func (o *CapabilityOverrides) window() int64 {
	if o == nil {
		return 0
	}
	return o.ContextWindow
}

// Differ reports whether candidates of a plan differ in the media that they can read, or in whether they call tools.
func Differ(plan []Candidate) bool {
	for i := 1; i < len(plan); i++ {
		if plan[i].abilities() != plan[0].abilities() {
			return true
		}
	}
	return false
}

// leastWindow is not larger than any built-in window. Smaller requests, which most are, need no look at the facts.
const leastWindow = 16_000

// Fits reports whether the model takes this number of tokens of prompt and reply, as far as is known.
func (c *Candidate) Fits(tokens int64) bool {
	if tokens <= leastWindow && c.overrides[0].window() == 0 && c.overrides[1].window() == 0 {
		return true
	}
	window, _ := c.ContextWindow()
	return window == 0 || tokens <= window
}

// serves reports whether the model can read the media that a request has, and can call its tools.
func (c *Candidate) serves(n Need) bool {
	can := c.abilities()
	return (can.images || !n.Images) && (can.files || !n.Files) && (can.audio || !n.Audio) && (can.tools || !n.Tools)
}

// abilities has what a candidate can take, as far as requests differ in it.
type abilities struct{ images, files, audio, tools bool }

// abilities returns what the candidate can take. The sandbox takes everything.
func (c *Candidate) abilities() abilities {
	if c.Provider.Shape == Sandbox {
		return abilities{true, true, true, true}
	}
	caps := c.Target(c.Provider.Shape).Caps
	return abilities{caps.ImagesIn, caps.FilesIn, caps.AudioIn, !caps.NoTools}
}

// AddRequest adds the media of a request, and whether the model may call tools, to its need.
func (n *Need) AddRequest(r *dialogue.Request) {
	choice := r.ToolChoice
	n.Tools = len(r.Tools) > 0 && (choice == nil || choice.Mode != dialogue.ToolNone)
	for i := range r.Turns {
		n.see(r.Turns[i].Parts)
	}
}

// see notes the kinds of media in parts and in the results of tools among them.
func (n *Need) see(parts []dialogue.Part) {
	for i := range parts {
		p := &parts[i]
		if p.Result != nil {
			n.see(p.Result.Parts)
		}
		if p.Media == nil {
			continue
		}
		switch p.Media.Kind {
		case dialogue.Image:
			n.Images = true
		case dialogue.Audio:
			n.Audio = true
		case dialogue.File:
			n.Files = n.Files || p.Media.Text == "" // a text is read by any model
		}
	}
}
