package responses

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/shapes"
)

// A client has a long conversation compacted either by POST /v1/responses/compact or by a last input item of the type
// compaction_trigger. An upstream of this shape does that itself. For any other one the gateway asks the model for a
// summary and gives the client the summary as a sealed compaction item, which later requests bring back.

// compactPath is the path below callPath of the route that compacts, and trigger the type of the
// item that asks for it.
const (
	compactPath = "/compact" // below callPath
	trigger     = "compaction_trigger"
	// compactionSeal is the origin of the seals that hold summaries. It is no shape, so that no encoder sends one on.
	compactionSeal dialogue.Shape = "compaction"
)

const (
	// askForSummary is the last turn of a request for a summary, in the role of the user.
	// beforeSummary introduces the summary in later requests.
	askForSummary = "The conversation above is about to be replaced by a summary. Write that summary for the " +
		"assistant that continues the work and sees nothing else of the conversation. State what the user wants, all " +
		"requirements and decisions, what was done and with which results, the names of the files, functions, " +
		"commands, ids and values that are needed further, what failed and why, and what remains to be done next. " +
		"Be complete and exact. Call no tool, continue no work and write nothing but the summary."
	beforeSummary = "The earlier part of this conversation was replaced by this summary of it:\n\n"
)

// compacts reports whether a request was sent to the route that compacts a conversation.
func compacts(in shapes.Params) bool { return strings.HasSuffix(in.Path, callPath+compactPath) }

// isCompaction reports whether items of a type stand for a compacted conversation. Older clients use the second and
// the third name.
func isCompaction(kind string) bool {
	return kind == "compaction" || kind == "compaction_summary" || kind == "context_compaction"
}

// Compactions implements shapes.Compacting.
func (shape) Compactions(data []byte) (made []string) {
	if !bytes.Contains(data, []byte("compaction")) {
		return nil
	}
	add := func(_, item gjson.Result) bool {
		text := item.Get("encrypted_content").Str
		if text != "" && isCompaction(item.Get("type").Str) && !dialogue.Sealed(text) {
			made = append(made, text)
		}
		return true
	}
	root := fields.View(data)
	add(root, root) // an item by itself
	for _, path := range []string{"input", "output", "item", "response.output"} {
		if v := root.Get(path); v.IsArray() {
			v.ForEach(add)
		} else {
			add(v, v)
		}
	}
	return made
}

// checkCompaction notes that the client asks for a summary. A trigger must be the last item.
func (c *checker) checkCompaction(path string, input gjson.Result) *dialogue.Error {
	if !strings.Contains(input.Raw, "compaction") {
		return nil
	}
	items := elements(input)
	at := slices.IndexFunc(items, isTrigger)
	switch {
	case at < 0:
		return nil
	case at < len(items)-1:
		return dialogue.Invalid(path+"["+strconv.Itoa(at)+"]", "must be the last item, because it is a "+trigger)
	}
	c.head.Compaction = dialogue.CompactionItem
	return nil
}

// isTrigger reports whether an item asks for a summary.
func isTrigger(item json.RawMessage) bool { return fields.View(item).Get("type").Str == trigger }

// compactOnly changes the Head of a request to the route that compacts, whose reply is one object
// that is neither streamed nor stored. It refuses a conversation, which has no place in that reply.
func (c *checker) compactOnly() *dialogue.Error {
	if c.head.Conversation != "" {
		return dialogue.Unsupported("conversation", "a conversation is not compacted, send its items as input")
	}
	c.head.Compaction = dialogue.CompactionObject
	c.head.Stream, c.head.Store, c.head.Background, c.streamOptions = false, false, false, false
	c.head.MaxTokens = -1 // see compact
	return nil
}

// compact turns the request into one for a summary. Tools stay, because calls in the history refer to them and the
// prompt's cache begins with them.
// The other members that would shape the answer, such as the output format and web search, are
// removed, because a summary in the client's JSON schema would be no summary.
func (d *decoder) compact() {
	r := d.req
	r.Compaction = d.compaction
	r.Stream = r.Stream && d.compaction != dialogue.CompactionObject
	if d.compaction == dialogue.CompactionObject {
		r.MaxTokens = nil // the object cannot say that its summary was cut off
	}
	r.Output, r.WebSearch, r.SearchOptions, r.LogProbs, r.TopLogProbs = dialogue.Output{}, false, nil, false, nil
	if len(r.Tools) > 0 {
		r.ToolChoice = &dialogue.ToolChoice{Mode: dialogue.ToolNone}
	}
	d.turn(dialogue.User, dialogue.Part{Kind: dialogue.TextPart, Text: askForSummary})
}

// summary adds an item that stands for a compacted conversation. One of this gateway becomes a turn
// with its text. One of a vendor stays as it is, because only that vendor can read it.
func (d *decoder) summary(at string, item gjson.Result) *dialogue.Error {
	summary, ours, err := openSummary(at, item.Get("encrypted_content").Str, d.env)
	switch {
	case err != nil:
		return err
	case ours:
		d.turn(dialogue.User, dialogue.Part{Kind: dialogue.TextPart, Text: summary})
	default:
		d.turn(dialogue.Assistant, dialogue.Part{Kind: dialogue.ServerPart, Origin: Name, Opaque: raw(item)})
	}
	return nil
}

// openSummary returns the text that stands for a conversation that this gateway compacted. ours is false if a vendor
// did. A seal that was changed, or was made for another owner, is an error, because without the item the model would
// answer without the conversation.
func openSummary(at, sealed string, env *dialogue.Env) (text string, ours bool, err *dialogue.Error) {
	if !dialogue.Sealed(sealed) {
		return "", false, nil
	}
	t, ok := env.Sealer.Open(sealed)
	if !ok || t.Origin != compactionSeal || t.ItemID != ownerMark(env.Owner) {
		return "", true, dialogue.Invalid(at+".encrypted_content", "was not made for this user or key, or was changed")
	}
	return beforeSummary + t.Text, true, nil
}

// ownerMark binds a summary to the owner of the conversation, whose id stays secret.
// A seal proves that this gateway wrote the summary, but not for whom. Without the mark, a client
// that got hold of the item of another one could have its conversation read out by a model. The
// hash is cut to 12 bytes, because it is compared and not looked up.
func ownerMark(owner string) string {
	sum := sha256.Sum256([]byte("compaction of " + owner))
	return hex.EncodeToString(sum[:12])
}

// restoredSummary returns the message that replaces an item of this gateway for an upstream that gets the client's own
// bytes, or nil if the item is not one of this gateway.
func restoredSummary(at string, item gjson.Result, env *dialogue.Env) ([]byte, *dialogue.Error) {
	text, ours, err := openSummary(at, item.Get("encrypted_content").Str, env)
	if err != nil || !ours {
		return nil, err
	}
	var w jsonw.Writer
	w.Object().Key("type").String("message").Key("role").String("user").Key("content").Array()
	w.Object().Key("type").String("input_text").Key("text").String(text).End()
	return w.End().End().Buf, nil
}

// withoutCompacted returns a conversation without what its newest compaction item stands for. Messages of users,
// instructions and declarations of tools stay, as they do in the vendor's own reply.
// Only the newest item counts, since it was made from a conversation in which the older ones
// already stood for their part.
func withoutCompacted(items []json.RawMessage) []json.RawMessage {
	newest := -1
	for i, item := range items {
		if isCompaction(fields.View(item).Get("type").Str) {
			newest = i
		}
	}
	kept := make([]json.RawMessage, 0, len(items))
	for i, item := range items {
		v := fields.View(item)
		message := itemType(v) == "message" && v.Get("role").Str != "assistant"
		if i >= newest || message || itemType(v) == additionalTools {
			kept = append(kept, item)
		}
	}
	return kept
}

// compactor writes the reply to a request for a summary, whose text becomes a compaction item.
// It embeds the emitter and overrides Emit, so that a summary reaches the client with the same
// events as any other response: the item is opened and closed once, with no delta between.
type compactor struct {
	*emitter
	reply dialogue.ReplyBuilder
}

// Emit writes ev. The reply has one item, which is written at its end.
func (c *compactor) Emit(dst []byte, ev *dialogue.Event) []byte {
	switch ev.Kind {
	case dialogue.EventOpen, dialogue.EventDelta, dialogue.EventClose:
		if ev.Choice == 0 && !c.ended {
			c.reply.Add(ev)
		}
		return dst
	case dialogue.EventEnd:
		if c.ended {
			return dst
		}
		if c.req.Compaction == dialogue.CompactionObject {
			c.ended = true
			return c.append(dst)
		}
		dst = c.emitter.Emit(dst, &dialogue.Event{Kind: dialogue.EventOpen, PartKind: dialogue.ServerPart, Origin: Name,
			Opaque: c.item()})
		dst = c.emitter.Emit(dst, &dialogue.Event{Kind: dialogue.EventClose})
	}
	return c.emitter.Emit(dst, ev)
}

// Summary returns the text of the reply, or "" if the model wrote none or its vendor's filter ended it. A text that was
// cut off may lack what remains to be done. It counts as a summary in a response, whose status shows that it was cut
// off, and not in the object of the route that compacts, which has no status.
func (c *compactor) Summary() string {
	cut := c.reason == dialogue.ReasonLength || c.reason == dialogue.ReasonContextWindow
	if len(c.reply.Reply.Choices) == 0 || c.reason == dialogue.ReasonFilter ||
		cut && c.req.Compaction == dialogue.CompactionObject {
		return ""
	}
	var text strings.Builder
	for _, p := range c.reply.Reply.Choices[0].Parts {
		if p.Kind == dialogue.TextPart {
			text.WriteString(p.Text)
		}
	}
	return strings.TrimSpace(text.String())
}

// append appends the reply of the route that compacts: the user's messages, which stay word for word, and the item.
// The user's messages are repeated because the client replaces its whole conversation by the
// output, and what a user wrote must not be paraphrased.
func (c *compactor) append(dst []byte) []byte {
	w := jsonw.Writer{Buf: dst}
	w.Object().Key("id").String(c.object.id).Key("object").String("response.compaction")
	w.Key("created_at").Int(c.object.created).Key("output").Array()
	for _, item := range ownItems(c.req.Body) {
		if v := fields.View(item); itemType(v) == "message" && v.Get("role").Str == "user" {
			w.Raw(ShownItem(completeItem(v, c.env.ID), included))
		}
	}
	w.Raw(c.item()).End().Key("usage")
	appendUsage(&w, &c.usage)
	return w.End().Buf
}

// item returns the compaction item.
func (c *compactor) item() []byte {
	sealed := c.env.Sealer.Seal(&dialogue.Thinking{Origin: compactionSeal, Text: c.Summary(),
		ItemID: ownerMark(c.env.Owner)})
	var w jsonw.Writer
	w.Object().Key("id").String(idPrefixes["compaction"] + c.env.ID()).Key("type").String("compaction")
	return w.Key("encrypted_content").String(sealed).End().Buf
}
