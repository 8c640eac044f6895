package schema

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// resolve returns the target of a $ref, or nil. It takes every JSON pointer into the document. It
// does not support anchors and other documents.
func (n *node) resolve(ref string) *node {
	pointer, local := strings.CutPrefix(ref, "#")
	if !local {
		return nil
	}
	if pointer, err := url.PathUnescape(pointer); err == nil {
		return n.at(pointer)
	}
	return nil
}

// at returns the node that a JSON pointer leads to, or nil.
func (n *node) at(pointer string) *node {
	if pointer == "" {
		return n
	}
	if pointer[0] != '/' {
		return nil
	}
	for step := range strings.SplitSeq(pointer[1:], "/") {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		n = n.step(step)
		if n == nil {
			return nil
		}
	}
	return n
}

// step returns the member or the item of a node, or nil.
func (n *node) step(name string) *node {
	if n.kind != '[' {
		return n.get(name)
	}
	i, err := strconv.Atoi(name)
	if err != nil || i < 0 || i >= len(n.items) {
		return nil
	}
	return n.items[i]
}

// refsHold reports whether every $ref of the document has a target and no target contains the
// $ref.
func (n *node) refsHold() bool {
	c := refCheck{root: n, done: map[*node]bool{}, chain: []*node{n}}
	return c.holds(n)
}

// refCheck finds out whether every reference of a schema leads to a schema, and none leads to itself.
type refCheck struct {
	root  *node
	chain []*node // targets that are being checked
	done  map[*node]bool
}

// holds reports whether a node and everything below it can be resolved. Dynamic references are not supported by any
// upstream.
func (c *refCheck) holds(n *node) bool {
	if n.get("$dynamicRef") != nil || n.get("$recursiveRef") != nil {
		return false
	}
	if ref := n.get("$ref"); ref != nil && !c.follows(ref.str()) {
		return false
	}
	return n.children(c.holds)
}

// follows reports whether a reference can be resolved without coming back to it. A target is checked once.
// done makes the check linear. Without it, a schema in which every definition refers twice to the
// next would take exponential time.
func (c *refCheck) follows(ref string) bool {
	target := c.root.resolve(ref)
	if target == nil || slices.Contains(c.chain, target) {
		return false
	}
	if c.done[target] {
		return true
	}
	c.chain = append(c.chain, target)
	ok := c.holds(target)
	c.chain = c.chain[:len(c.chain)-1]
	c.done[target] = true
	return ok
}

// defined reports whether a $ref names an entry of one of the places, such as $defs, directly. Such references stay
// valid when the rest of the document is rewritten.
func defined(ref string, places ...string) bool {
	for _, place := range places {
		name, ok := strings.CutPrefix(ref, "#/"+place+"/")
		if ok && name != "" && !strings.Contains(name, "/") {
			return true
		}
	}
	return false
}
