package text

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
	"stagedoor/providers/upstream"
)

// amendAfter has the next attempt send the request otherwise if f is about something that the gateway can change: the
// reasoning or the ids of calls that another upstream made, a summary or edits that it does not make by itself, top_k,
// or a prompt that is too long. All but the last are changed once for each target, and shortened.more bounds that one.
// A prompt is not shortened while a target is left that is for such prompts, because it gets the whole conversation.
// The calls of a fan-out run at the same time, so the decision is made here, when all of them have ended.
func (a *attempt) amendAfter(f *upstream.Failure) {
	switch target := a.targetName(); {
	case f == nil:
	case f.Reasoning && a.reasoningRefused != target:
		a.reasoningRefused, f.Amended = target, true
	case f.CallIDs && a.callIDsRefused != target:
		a.callIDsRefused, f.Amended = target, true
	case f.Compaction && a.compactionRefused != target:
		a.compactionRefused, f.Amended = target, true
	case f.Context && a.contextRefused != target:
		a.contextRefused, f.Amended = target, true
	case f.TopK && a.topKRefused != target:
		a.topKRefused, f.Amended = target, true
	case f.LongPrompt && a.shortens() && !a.c.LeadsOn(catalog.OnContextLength):
		if req, err := a.decodeWhole(); err == nil {
			a.editContext(req, nil)
			f.Amended = a.shortened.more(req, f.PromptSize)
		}
	}
}

// shortens reports whether turns may be left out of a prompt that is too long. A client that lets the provider compact
// its conversation does not send a shorter one itself, so it would be stuck at a target that does not compact.
func (a *attempt) shortens() bool {
	return a.request.Head.Truncate || a.request.Head.Compacts && !a.targetEdits()
}

// targetEdits reports whether the target is asked to edit the conversation by itself. It must be of the client's shape
// and must not have refused to. A translated request asks only vendors whose compactions a translated reply can hold:
// the reply of another vendor says which edits it made, and that would be lost.
func (a *attempt) targetEdits() bool {
	if a.shape == nil || a.shape.Name != a.request.Inbound.Name || a.contextRefused == a.targetName() {
		return false
	}
	_, compacts := a.shape.Inbound.(shapes.Compacting)
	return a.meta.Untouched || compacts
}

// editContext makes the edits of the conversation that the target does not make. Edits that the
// gateway cannot make are a loss.
func (a *attempt) editContext(req *dialogue.Request, rep *dialogue.Report) {
	if !a.targetEdits() && !EditContext(req) {
		rep.Lose(contextManagement)
	}
}

// unknownMember has the words with which servers refuse a member that they do not know.
var unknownMember = regexp.MustCompile(
	`(?i)\b(?:extra|additional|unknown|unrecogni[sz]ed|unsupported|unexpected|not (?:permitted|allowed|support))`)

// namesContext reports whether a refusal is about the edits of the conversation that the client asks for. Servers that
// only speak the shape of the vendor do not know the member. A vendor that knows it names what is wrong in it, as in
// "context_management.edits.0: ...", and that refusal is for the client.
func namesContext(refusal *dialogue.Error, sent []byte) bool {
	if !bytes.Contains(sent, []byte(`"`+contextManagement+`"`)) {
		return false
	}
	text := refusal.Param + " " + refusal.Message
	return strings.Contains(text, contextManagement) && !insideContext.MatchString(text) &&
		(refusal.Param == contextManagement || unknownMember.MatchString(refusal.Message))
}

// namesTopK reports whether a refusal says that the upstream does not know top_k. A refusal of its value is for the
// client.
func namesTopK(refusal *dialogue.Error, sent []byte) bool {
	return bytes.Contains(sent, []byte(`"`+topK+`"`)) &&
		strings.Contains(refusal.Param+" "+refusal.Message, topK) && unknownMember.MatchString(refusal.Message)
}

// topK is the parameter that the gateway accepts in the shapes of chat and responses, whose vendor lacks it
// (gateway.md 1). Upstreams that have it get it, and others ignore it.
const topK = "top_k"

// withoutTopK returns a body without the parameter.
func withoutTopK(body []byte) []byte {
	members := fields.Members(body)
	return fields.Without(body, members, func(i int) bool { return members[i].Name == topK })
}

// insideContext finds a path that leads into the member.
var insideContext = regexp.MustCompile(contextManagement + `(?:\.\w|\[)`)

// isAboutCompaction reports whether a failure may be that of an upstream which does not compact conversations. Servers
// of the shape refuse the item or the route, fail at it, or go on with the conversation as if the item were not there.
func (a *attempt) isAboutCompaction(f *upstream.Failure) bool {
	status := f.Err.Status
	fails := f.Class == upstream.Transient && (!f.Answered || status == http.StatusInternalServerError ||
		status == http.StatusNotImplemented)
	return (fails || f.Class == upstream.CallerFault) && a.meta.Untouched && !f.LongPrompt && !f.Filtered &&
		a.request.Head.Compaction != dialogue.NoCompaction
}

// targetName names the provider and the model of the attempt.
func (a *attempt) targetName() string { return a.c.Provider.Name + "/" + a.c.Model }

// namesCallIDs reports whether a refusal is about the ids of calls in the history. A request that passes through has
// the ids that its client sends, and the vendors of one shape differ in the ids that they take. Most take any, and some
// of those read their own ids, so a request is translated, which makes ids that all of them take, only after a refusal.
func namesCallIDs(refusal *dialogue.Error) bool {
	text := strings.ToLower(refusal.Param + " " + refusal.Message)
	names := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	return names("tool_call", "tool call", "call_id", "tool_use") &&
		names(".id", "_id", " id ") && names("long", "length", "pattern", "characters")
}
