package text

import (
	"slices"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/tokens"
)

// clearedResult takes the place of a result that an edit clears, so that the model knows that there was one.
const clearedResult = "[The result of this old call was cleared to save room.]"

// contextManagement is the member in which clients of two shapes ask for edits of their conversation.
const contextManagement = "context_management"

// EditContext makes the edits of the conversation that the client asks for and that the vendor of its shape would make
// by itself. It is for targets that do not make them. Tokens are estimated by bytes. Each edit notes what it cleared,
// for the reply. EditContext returns false if the request asks for an edit that the gateway cannot make.
//
// The same request is always edited alike, so that prompt caches hit.
func EditContext(req *dialogue.Request) (complete bool) {
	asked := false
	req.Extra = slices.DeleteFunc(slices.Clone(req.Extra), func(f dialogue.Field) bool {
		asked = asked || f.Name == contextManagement
		return f.Name == contextManagement
	})
	for i := range req.ContextEdits {
		if e := &req.ContextEdits[i]; e.Thinking {
			clearThinking(req, e)
		} else {
			clearResults(req, e)
		}
	}
	return !asked || req.OnlyContextEdits
}

// clearThinking removes the thinking of all answers but the newest. An answer is all that the model wrote since the
// last message of its user, because vendors want the thinking of a loop of calls back as a whole.
func clearThinking(req *dialogue.Request, e *dialogue.ContextEdit) {
	isThinking := func(p dialogue.Part) bool { return p.Kind == dialogue.ThinkingPart }
	kept, counted := int64(0), false // counted: the answer at hand has thinking and counts
	for i := len(req.Turns) - 1; i >= 0; i-- {
		t := &req.Turns[i]
		if authorOf(t) == byUser {
			counted = false
		}
		if t.Role != dialogue.Assistant || !slices.ContainsFunc(t.Parts, isThinking) {
			continue
		}
		if !counted {
			counted = true
			if kept++; kept > e.Keep {
				e.Cleared++
			}
		}
		if kept > e.Keep {
			before := tokens.EstimateParts(t.Parts)
			t.Parts = slices.DeleteFunc(slices.Clone(t.Parts), isThinking)
			e.Tokens += before - tokens.EstimateParts(t.Parts)
		}
	}
}

// use is a call with its result, which is nil if there is none yet.
type use struct {
	call   *dialogue.Call
	result *dialogue.Result
}

// clearResults clears the results of all calls but the newest once the conversation is long enough. The results that
// the model is to answer now always stay.
func clearResults(req *dialogue.Request, e *dialogue.ContextEdit) {
	uses := usesOf(req.Turns)
	long := e.AfterCalls > 0 && int64(len(uses)) > e.AfterCalls
	if e.AfterTokens > 0 && !long {
		size := fixedTokens(req)
		for i := range req.Turns {
			size += tokens.EstimateParts(req.Turns[i].Parts)
		}
		long = size > e.AfterTokens
	}
	if !long {
		return
	}
	old := uses[:max(int64(len(uses))-e.Keep, 0)]
	old = slices.DeleteFunc(old, func(u use) bool { return u.result == nil || e.Exclude[u.call.Name] })
	placeholder := []dialogue.Part{{Kind: dialogue.TextPart, Text: clearedResult}}
	saved := int64(0)
	for _, u := range old {
		saved += max(tokens.EstimateParts(u.result.Parts)-tokens.EstimateParts(placeholder), 0)
		if e.ClearsArgs(u.call.Name) {
			saved += tokens.Estimate(len(u.call.Args))
		}
	}
	if saved < e.AtLeast {
		return
	}
	for _, u := range old {
		u.result.Parts, u.result.Object = placeholder, nil
		if e.ClearsArgs(u.call.Name) {
			u.call.Args, u.call.Signature = "", "" // the signature is of the arguments
		}
	}
	e.Cleared, e.Tokens = len(old), saved
}

// usesOf lists the calls of a conversation with their results. A result belongs to the last call with its id before it,
// because a later call may have the id of an earlier one. Results that the model has not seen yet are left out: those
// behind its last turn, also if messages follow them. An assistant's turn at the very end only begins the answer.
func usesOf(turns []dialogue.Turn) []use {
	isModels := func(i int) bool { return turns[i].Role == dialogue.Assistant }
	answered := len(turns) - 1
	for answered >= 0 && isModels(answered) {
		answered--
	}
	for answered >= 0 && !isModels(answered) {
		answered--
	}
	var uses []use
	at := map[string]int{}
	for i := range turns {
		for j := range turns[i].Parts {
			switch p := &turns[i].Parts[j]; {
			case p.Call != nil:
				at[p.Call.ID] = len(uses)
				uses = append(uses, use{call: p.Call})
			case p.Result != nil && i < answered:
				if n, found := at[p.Result.CallID]; found {
					uses[n].result = p.Result
				}
			}
		}
	}
	return uses
}
