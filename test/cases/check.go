package cases

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// checkUpstream judges what the upstream was asked. The expectations are about the first call. The rules of the shape
// are held against every call, but not where a request passes through in its own shape, because there the client
// answers for it.
func (x *Exchange) checkUpstream(c *Case, calls []call) (bad []string) {
	want := x.UpstreamCalls
	if want == nil {
		want = number(1)
	}
	bad = append(bad, match(number(len(calls)), want, "upstream calls")...)
	if len(calls) > 0 {
		first := calls[0]
		for _, e := range matchMap(first.body, x.UpstreamRequest, neutral(c.Upstream, first.body)) {
			bad = append(bad, "upstream: "+e)
		}
		if x.UpstreamPath != nil {
			bad = append(bad, match(first.path, x.UpstreamPath, "upstream path")...)
		}
	}
	for _, call := range calls {
		if call.problem != "" {
			bad = append(bad, "upstream: "+call.problem)
			continue
		}
		if c.Inbound == c.Upstream || x.skips("upstream_invariants") {
			continue
		}
		for _, e := range upstreamRules(c.Upstream, call.body) {
			bad = append(bad, "upstream invariant: "+e)
		}
	}
	return bad
}

// checkOutcomes judges the reply: by the one outcome, or one of the alternatives must hold. It returns the
// reply as a follow-up quotes it, or nil if it cannot be quoted. Alternatives are for what the gateway may
// choose, such as a refusal or a degraded request. Each of them is tried whole, so that parts of two do not
// make up a third.
func (x *Exchange) checkOutcomes(c *Case, request json.RawMessage, reply *Reply) (any, []string) {
	if len(x.Alternatives) == 0 {
		return x.checkClient(c, request, reply, &x.Outcome)
	}
	var tried []string
	for i := range x.Alternatives {
		view, bad := x.checkClient(c, request, reply, &x.Alternatives[i])
		if len(bad) == 0 {
			return view, nil
		}
		tried = append(tried, strings.Join(bad[:min(3, len(bad))], "; "))
	}
	return nil, []string{"no alternative holds: " + strings.Join(tried, " || ")}
}

// checkClient checks a reply and returns its body, or what its events fold to, for placeholders of later exchanges.
func (x *Exchange) checkClient(c *Case, request json.RawMessage, reply *Reply, o *Outcome) (any, []string) {
	bad := x.checkHead(reply, o)
	if len(bad) > 0 {
		// The body of a reply that is another than expected says nothing new, except why.
		return nil, append(bad, fmt.Sprintf("body: %.300s", reply.Body))
	}
	if reply.Status >= http.StatusBadRequest || !x.streamed() {
		return x.checkWhole(c, reply, o)
	}
	return x.checkStream(c, request, reply, o)
}

// checkHead checks status and headers. A header that says that structured output is not enforced must not be there
// unless the case names it.
func (x *Exchange) checkHead(reply *Reply, o *Outcome) []string {
	want := o.Status
	if want == nil {
		want = number(http.StatusOK)
	}
	bad := match(number(reply.Status), want, "status")
	if reply.Header.Get("X-Request-Id") == "" {
		bad = append(bad, "no X-Request-Id header")
	}
	headers := object{"x-structured-output-degraded": object{"$absent": true}}
	for name, m := range x.Headers {
		headers[strings.ToLower(name)] = m
	}
	for _, name := range names(headers) {
		var got any = missing
		if v := reply.Header.Values(name); len(v) > 0 {
			got = strings.Join(v, ", ")
		}
		bad = append(bad, match(got, headers[name], "header "+name)...)
	}
	return bad
}

// checkWhole checks a reply that is one document.
func (x *Exchange) checkWhole(c *Case, reply *Reply, o *Outcome) (any, []string) {
	body, bad := WholeRules(c.Inbound, reply, c.Inbound != c.Upstream)
	if body == nil {
		return nil, bad
	}
	return body, append(bad, matchMap(body, o.Client.Body, nil)...)
}

// checkStream checks a stream: its rules as events, what they fold to, and which of them come or never come.
// A stream whose connection was aborted is taken for one with an error, and is not held to the rules of a
// complete one.
func (x *Exchange) checkStream(c *Case, request json.RawMessage, reply *Reply, o *Outcome) (any, []string) {
	var bad []string
	if !strings.Contains(reply.Header.Get("Content-Type"), "text/event-stream") {
		bad = append(bad, "content-type is not text/event-stream")
	}
	events, err := Decode(reply.Body)
	if err != nil {
		return nil, append(bad, "stream cannot be parsed: "+err.Error())
	}
	folded, wrong := Fold(c.Inbound, events)
	bad = append(bad, wrong...)
	switch {
	case reply.Aborted:
		folded["_error"] = firstFull(folded["_error"], object{"message": "connection aborted"})
	case !x.skips("client_invariants"):
		bad = append(bad, ClientRules(c.Inbound, events, asksUsage(request))...)
	}
	bad = append(bad, matchMap(folded, o.Client.Folded, nil)...)
	all := listed(events)
	if len(o.Client.Events) > 0 {
		bad = append(bad, match(all, object{"$subseq": o.Client.Events}, "events")...)
	}
	for _, never := range o.Client.Never {
		bad = append(bad, match(all, object{"$none": never}, "never")...)
	}
	return folded, bad
}

// asksUsage reports whether a chat request asks for usage at the end of its stream.
func asksUsage(request json.RawMessage) bool {
	v, err := parse(request)
	return err == nil && !isEmpty(asObject(asObject(v)["stream_options"])["include_usage"])
}
