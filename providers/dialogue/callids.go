package dialogue

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// MaxCallID is the longest id of a call that upstreams of every shape take. Ids that the gateway
// makes are never longer.
const MaxCallID = 40

// CallIDs gives the calls of one conversation ids that an upstream takes: at most a number of
// letters, digits, '-' and '_', no two the same. A client's id that is fit stays. Any other becomes
// a function of the call's position, name, arguments and id, so that the same history is always
// sent in the same bytes and the upstream's prompt cache can hold its beginning.
type CallIDs struct {
	limit int
	taken map[string]bool
	calls int // seen so far
}

// NewCallIDs returns the ids of a conversation for an upstream that takes limit characters, at
// least MaxCallID.
func NewCallIDs(limit int) *CallIDs { return &CallIDs{limit: limit, taken: map[string]bool{}} }

// Of returns the id for the next call of the conversation. It is called once for each call, in
// their order.
func (c *CallIDs) Of(call *Call) string {
	id := call.ID
	if len(id) > c.limit || !isCallID(id) || c.taken[id] {
		id = derivedID(strconv.Itoa(c.calls), call.Name, call.Args, call.ID)
	}
	c.calls++
	c.taken[id] = true
	return id
}

// CallID returns a new id for a call to which its upstream gave none.
func (e *Env) CallID() string {
	id := "call_" + e.ID()
	if len(id) <= MaxCallID {
		return id
	}
	return derivedID(id)
}

// ClientCallID returns the id that a client gets for a call: the upstream's, unless not every upstream would take it
// back. Any other is new and no function of the upstream's, because some upstreams count their calls
// ("functions.search:0"), and what is remembered for a call must not reach another conversation.
func (e *Env) ClientCallID(id string) string {
	if len(id) > MaxCallID || !isCallID(id) {
		return e.CallID()
	}
	return id
}

// derivedID returns an id of 37 characters that depends on all of its inputs.
func derivedID(inputs ...string) string {
	h := sha256.New()
	for _, s := range inputs {
		h.Write([]byte(strconv.Itoa(len(s)) + ":" + s))
	}
	return "call_" + hex.EncodeToString(h.Sum(nil)[:16])
}

// isCallID reports whether every vendor accepts id as the id of a call.
func isCallID(id string) bool {
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return id != ""
}
