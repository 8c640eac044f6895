package fields_test

import (
	"fmt"
	"strings"
	"testing"

	"stagedoor/providers/fields"
)

func nested(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

// wide is an object of n names.
func wide(n int) string {
	b := []byte("{")
	for i := range n {
		b = fmt.Appendf(b, `"n%d":0,`, i)
	}
	return string(append(b[:len(b)-1], '}'))
}

func TestRequestsKeepTheLimits(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       fields.Flaw
		path       string
	}{
		{"as deep as may be", nested(fields.MaxDepth), fields.Sound, ""},
		{"too deep", nested(fields.MaxDepth + 1), fields.TooDeep, ""},
		{"too deep, 7 MB", strings.Repeat("[", 7<<20), fields.TooDeep, ""},
		{"as wide as may be", wide(fields.MaxNames), fields.Sound, ""},
		{"too wide", wide(fields.MaxNames + 1), fields.TooManyNames, ""},
		{"a million names inside", `{"a":[0,{"b":"x","\"c":` + wide(1_000_000) + `}]}`, fields.TooManyNames, `a.1."c`},
		{"a name as long as may be", `{"a":{"` + strings.Repeat("n", fields.MaxNameBytes) + `":0}}`, fields.Sound, ""},
		{"a name too long", `{"a":{"` + strings.Repeat("n", fields.MaxNameBytes+1) + `":0}}`, fields.TooLongName, "a"},
		{"a name without end", `{"a":{"` + strings.Repeat("n", fields.MaxNameBytes+1), fields.Malformed, ""},
		{"twice", `{"a":[{"b":{"c":1,"\u0063":2}}]}`, fields.RepeatedName, "a.0.b.c"},
		{"cut", `{"a":`, fields.Malformed, ""},
		{"two", `{}{}`, fields.Malformed, ""},
	} {
		if got := fields.Explain([]byte(c.text)); got.Flaw != c.want || got.Path != c.path {
			t.Errorf("%s: got %v at %q, want %v at %q", c.name, got.Flaw, got.Path, c.want, c.path)
		}
		if got := fields.Valid([]byte(c.text)); got != (c.want == fields.Sound) {
			t.Errorf("%s: Valid says %v", c.name, got)
		}
	}
}

func TestRepliesKeepTheLimits(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"as deep as may be", nested(fields.MaxReplyDepth), ""},
		{"too deep", nested(fields.MaxReplyDepth + 1), "the event is nested deeper than 512 levels"},
		{"too deep, 7 MB", strings.Repeat(`{"a":`, 7<<18), "the event is nested deeper than 512 levels"},
		{"names twice", `{"a":1,"a":2}`, ""},
		{"too wide", wide(fields.MaxNames + 1), "the event has an object of more than 10000 names"},
		{"a name as long as may be", `{"` + strings.Repeat("n", fields.MaxNameBytes) + `":0}`, ""},
		{"a name too long", `{"` + strings.Repeat("n", fields.MaxNameBytes+1) + `":0}`,
			"the event has a name of more than 65536 bytes"},
	} {
		checked := fields.CheckReply("event", []byte(c.text))
		if c.want == "" {
			if checked != nil || !fields.ValidLenientString(c.text) {
				t.Errorf("%s: refused: %v", c.name, checked)
			}
			continue
		}
		if checked == nil || checked.Status != 502 || !strings.HasSuffix(checked.Message, c.want) ||
			fields.ValidLenientString(c.text) {
			t.Errorf("%s: got %v, want 502 and %s", c.name, checked, c.want)
		}
	}
}

// An event of up to 1 KiB cannot break a limit, so only its two ends are looked at.
func TestEventsAreCheckedAtTheirEndsAndLongOnesWhole(t *testing.T) {
	long := strings.Repeat(" ", 1<<10)
	for text, want := range map[string]string{
		`{}`: "", " \t{}\r\n": "", `{"a":}`: "", "[DONE]": "", " [DONE] ": "",
		`{"a":` + long + `1}`: "", `{"a":1}` + long: "", `[DONE]` + long: "",
		"": "not a JSON object", "{": "not a JSON object", `"{}"`: "not a JSON object", "[{}]": "not a JSON object",
		"<html>": "not a JSON object", `{"a":1`: "not a JSON object", "DONE": "not a JSON object",
		`{"a":` + long + `}`: "not JSON", `{"a":1` + long + `}}`: "not JSON", "[" + long + "]": "not a JSON object",
		`{"a":` + nested(fields.MaxReplyDepth) + "}": "nested deeper than 512 levels",
		wide(fields.MaxNames + 1):                    "more than 10000 names",
	} {
		bad := fields.CheckEvent([]byte(text))
		switch {
		case want == "" && bad != nil:
			t.Errorf("%.40q: got %v, want no error", text, bad)
		case want != "" && (bad == nil || bad.Status != 502 || !strings.Contains(bad.Error(), want)):
			t.Errorf("%.40q: got %v, want %q", text, bad, want)
		}
	}
}

func TestPiecesOfJSONKeepTheLimits(t *testing.T) {
	for text, want := range map[string]string{
		nested(fields.MaxReplyDepth):                       "",
		nested(fields.MaxReplyDepth + 1):                   "the call is nested deeper than 512 levels",
		wide(fields.MaxNames):                              "",
		wide(fields.MaxNames + 1):                          "the call has an object of more than 10000 names",
		`{"a":"` + strings.Repeat(`[{\"::`, 20_000) + `"}`: "",
	} {
		var n fields.Nesting
		got := ""
		for rest := text; rest != "" && got == ""; rest = rest[min(len(rest), 7):] {
			if bad := n.Add("call", rest[:min(len(rest), 7)]); bad != nil {
				_, got, _ = strings.Cut(bad.Message, ": ")
			}
		}
		if got != want {
			t.Errorf("%.20q: got %q, want %q", text, got, want)
		}
	}
}

func TestJSONInsideStringsKeepsTheLimits(t *testing.T) {
	for text, want := range map[string]string{
		nested(fields.MaxDepth):               "",
		"prose [[" + strings.Repeat("[", 999): "",
		strings.Repeat("[", 7<<20):            "messages.0.content: must not hold JSON that is nested deeper than 128 levels",
		wide(fields.MaxNames + 1):             "messages.0.content: must not hold JSON that has an object of more than 10000 names",
	} {
		got := ""
		if err := fields.CheckInner("messages.0.content", text); err != nil {
			_, got, _ = strings.Cut(err.Error(), ": ")
		}
		if got != want {
			t.Errorf("%.20q: got %q, want %q", text, got, want)
		}
	}
}

func TestRequestsHaveABoundedNumberOfItems(t *testing.T) {
	names := fields.NewNames("messages", "content", "tools").Except("messages.input")
	long := fields.NewNames("messages", "content", "tools").WithLongList("messages")
	repeat := func(n int, item string) string { return "[" + strings.Repeat(item+",", n-1) + item + "]" }
	const n = fields.MaxItems
	for _, c := range []struct {
		name  string
		names *fields.Names
		text  string
		path  string
	}{
		{"as many as may be", names, `{"messages":` + repeat(n, "{}") + `}`, ""},
		{"one more", names, `{"tools":[{}],"messages":` + repeat(n, "{}") + `}`, "messages"},
		{"parts", names, `{"messages":[{"content":` + repeat(n, "{}") + `}]}`, "messages.0.content"},
		{"in all", names, `{"messages":` + repeat(n/2, `{"content":[{},{}]}`) + `}`, "messages.3333.content"},
		{"long ones", names, `{"messages":` + repeat(2*n, `{"content":"`+strings.Repeat("x", 384)+`"}`) + `}`, ""},
		{"no objects", names, `{"messages":` + repeat(9*n, `0`) + `}`, ""},
		{"in a field that is not read", names, `{"a":` + repeat(2*n, "{}") + `}`, ""},
		{"in arguments", names, `{"messages":[{"input":{"a":` + repeat(2*n, `{}`) + `}}]}`, ""},
		{"a long list", long, `{"messages":` + repeat(10*n, `{"content":[{}]}`) + `}`, ""},
		{"below a long list", long, `{"messages":[{"content":` + repeat(n+2, "{}") + `}]}`, "messages.0.content"},
		{"beside a long list", long, `{"messages":[{}],"tools":` + repeat(n+2, "{}") + `}`, "tools"},
	} {
		fault := fields.ExplainNames([]byte(c.text), c.names)
		if (fault.Flaw == fields.TooManyItems) != (c.path != "") || fault.Path != c.path {
			t.Errorf("%s: got %v at %q, want it at %q", c.name, fault.Flaw, fault.Path, c.path)
		}
		if fields.ValidObject([]byte(c.text), c.names) != (c.path == "") {
			t.Errorf("%s: ValidObject disagrees", c.name)
		}
		r := fields.NewReader([]byte(c.text)).Knowing(c.names)
		_ = r.Object(func(name []byte) error {
			if string(name) == "messages" && c.names == names {
				return r.Array(func(int) error { return nil })
			}
			return nil
		})
		if c.names == names && r.Whole() != (c.path == "") {
			t.Errorf("%s: the walk disagrees", c.name)
		}
	}
}
