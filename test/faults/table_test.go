package faults

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"stagedoor/test/cases"
	"stagedoor/test/faults/faultd"
)

// An outcome is a set of ends that are right: an answer, a stream that says it
// broke, a refusal of one of some statuses.
type outcome struct {
	answer  bool
	broken  bool
	refused []int
}

var (
	answered    = outcome{answer: true}
	brokenOff   = outcome{broken: true}
	serverError = []int{500, 502, 503, 504, 529}
)

func refused(statuses ...int) outcome { return outcome{refused: statuses} }

func either(outcomes ...outcome) outcome {
	var sum outcome
	for _, o := range outcomes {
		sum.answer, sum.broken = sum.answer || o.answer, sum.broken || o.broken
		sum.refused = append(sum.refused, o.refused...)
	}
	return sum
}

// A fault is a row of the catalogue.
type fault struct {
	id    string // of the row, with a letter where one row is several faults
	title string
	// play answers for a provider of a shape; streamed tells what was asked for.
	play func(c *faultd.Conn, w faultd.Wire, streamed bool)
	// whole and stream are what may come of it; nil: the fault does not apply.
	whole, stream *outcome
	// short sets the provider's clocks to a fraction of a second.
	short bool
	// shapes are the upstream shapes it applies to; nil: all.
	shapes []cases.Shape
	// untranslated leaves out clients of the upstream's own shape, who are given the
	// upstream's own events.
	untranslated bool
	// silent: the answer has no text to look for.
	silent bool
	// baseURL replaces the address of the upstream, for faults before the first byte.
	baseURL string
	// check looks at what else the reply must be.
	check func(reply *cases.Reply, upstream cases.Shape, inbound cases.Shape) string
}

func both(o outcome) (whole, stream *outcome) { return &o, &o }
func only(o outcome) *outcome                 { return &o }

// good answers as asked.
func good(c *faultd.Conn, w faultd.Wire, streamed bool) {
	if !streamed {
		c.Whole(http.StatusOK, "application/json", w.Whole)
		return
	}
	sendStream(c, strings.Join(w.Stream(), ""))
}

// sendStream writes a stream as one chunk and ends it properly.
func sendStream(c *faultd.Conn, events string) {
	c.StartStream()
	c.Chunk(events)
	c.EndChunks()
}

// rewritten is a good stream with its text changed.
func rewritten(change func(string) string) func(*faultd.Conn, faultd.Wire, bool) {
	return func(c *faultd.Conn, w faultd.Wire, _ bool) { sendStream(c, change(strings.Join(w.Stream(), ""))) }
}

// status answers an error of the provider's own shape.
func status(code int, kind string, lines ...string) func(*faultd.Conn, faultd.Wire, bool) {
	return func(c *faultd.Conn, w faultd.Wire, _ bool) {
		c.Whole(code, "application/json", w.Error(code, kind, "the provider says no"), lines...)
	}
}

// page answers an error with a body no client should ever see.
func page(code int, body string) func(*faultd.Conn, faultd.Wire, bool) {
	return func(c *faultd.Conn, _ faultd.Wire, _ bool) { c.Whole(code, "text/html", body) }
}

// A secret in a provider's reply that must not reach a client.
const marker = "internal-host-7f3a"

var htmlPage = "<html><body>" + marker + strings.Repeat("<p>proxy</p>", 9000) + "</body></html>"

func zip(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text)) // a Buffer takes everything
	_ = z.Close()
	return b.String()
}

// body answers with bytes in an encoding, as a stream or not.
func body(encoding string, make func(w faultd.Wire, streamed bool) string) func(*faultd.Conn, faultd.Wire, bool) {
	return func(c *faultd.Conn, w faultd.Wire, streamed bool) {
		kind := "application/json"
		if streamed {
			kind = "text/event-stream"
		}
		c.Whole(http.StatusOK, kind, make(w, streamed), "Content-Encoding: "+encoding)
	}
}

func content(w faultd.Wire, streamed bool) string {
	if streamed {
		return strings.Join(w.Stream(), "")
	}
	return w.Whole
}

// slowly writes byte by byte, so that no event and no character is whole.
func slowly(c *faultd.Conn, w faultd.Wire, streamed bool) {
	text := content(w, streamed)
	if streamed {
		c.StartStream()
	} else {
		c.Head(http.StatusOK, "Content-Type: application/json", "Transfer-Encoding: chunked")
	}
	for i := range len(text) {
		c.Chunk(text[i : i+1])
		if i%97 == 0 {
			c.Pause(time.Millisecond)
		}
	}
	c.EndChunks()
}

// cut ends a stream after its first delta, a whole reply in its middle.
func cut(end func(c *faultd.Conn)) func(*faultd.Conn, faultd.Wire, bool) {
	return func(c *faultd.Conn, w faultd.Wire, streamed bool) {
		if streamed {
			c.StartStream()
			c.Chunk(w.Begun())
		} else {
			c.Head(http.StatusOK, "Content-Type: application/json", "Transfer-Encoding: chunked")
			c.Chunk(w.Whole[:len(w.Whole)/2])
		}
		c.Pause(20 * time.Millisecond) // so that what was sent arrives before the end does
		end(c)
	}
}

// row fills in the same outcome for both modes.
func row(id, title string, play func(*faultd.Conn, faultd.Wire, bool), o outcome) fault {
	f := fault{id: id, title: title, play: play}
	f.whole, f.stream = both(o)
	return f
}

// streamRow is a fault only streams have.
func streamRow(id, title string, play func(*faultd.Conn, faultd.Wire, bool), o outcome) fault {
	return fault{id: id, title: title, play: play, stream: only(o)}
}

// with changes a row in place where it stands in the table.
func (f fault) with(change func(f *fault)) fault { change(&f); return f }

func catalogue() []fault {
	var rows []fault
	rows = append(rows, connectionFaults()...)
	rows = append(rows, framingFaults()...)
	rows = append(rows, streamFaults()...)
	rows = append(rows, contentFaults()...)
	return append(rows, statusFaults()...)
}

// closed is an address that refuses connections.
func closed() string {
	addr, err := faultd.Closed()
	if err != nil {
		panic(err)
	}
	return addr
}

func connectionFaults() []fault {
	unreachable := refused(502)
	torn := func(o fault) fault { return o.with(func(f *fault) { f.stream = only(brokenOff) }) }
	return []fault{
		row("u1", "the name does not resolve", nil,
			unreachable).with(func(f *fault) { f.baseURL = "http://no..such..host:9" }),
		row("u2", "the connection is refused", nil,
			unreachable).with(func(f *fault) { f.baseURL = "http://" + closed() }),
		row("u5", "reset right after the request", func(c *faultd.Conn, _ faultd.Wire, _ bool) { c.Reset() },
			refused(502)),
		row("u7", "reset after the headers", func(c *faultd.Conn, _ faultd.Wire, streamed bool) {
			if streamed {
				c.StartStream()
			} else {
				c.Head(200, "Content-Type: application/json", "Content-Length: 100")
			}
			c.Pause(20 * time.Millisecond)
			c.Reset()
		}, refused(502)),
		torn(row("u8", "reset in the middle of the body", cut((*faultd.Conn).Reset), refused(502))),
		torn(row("u10", "clean end in the middle of the body", cut((*faultd.Conn).EndChunks), refused(502))),
		row("u13", "silence before the headers", func(c *faultd.Conn, _ faultd.Wire, _ bool) { c.Stall() },
			refused(504)).
			with(func(f *fault) { f.short = true }),
		torn(row("u14", "silence in the middle of the body", cut(func(c *faultd.Conn) { c.Stall() }), refused(504))).
			with(func(f *fault) { f.short = true }),
		row("u15", "every byte on its own", slowly, answered),
		row("u41", "a cold start", func(c *faultd.Conn, w faultd.Wire, streamed bool) {
			c.Pause(700 * time.Millisecond)
			good(c, w, streamed)
		}, answered),
	}
}

func framingFaults() []fault {
	bomb := zip(strings.Repeat(" ", 80<<20)) // little that grows much
	lying := func(c *faultd.Conn, w faultd.Wire, streamed bool) {
		kind, text := "application/json", w.Whole
		if streamed {
			kind, text = "text/event-stream", w.Begun()
		}
		c.Head(200, "Content-Type: "+kind, fmt.Sprintf("Content-Length: %d", len(text)+50), "Connection: close")
		c.Send(text)
	}
	return []fault{
		row("u11a", "the body is shorter than its length", lying,
			refused(502)).with(func(f *fault) { f.stream = only(brokenOff) }),
		row("u11b", "a bad chunk size", cut(func(c *faultd.Conn) { c.Send("zz\r\nxx\r\n0\r\n\r\n") }), refused(502)).
			with(func(f *fault) { f.stream = only(brokenOff) }),
		row("u11c", "the last chunk is missing", func(c *faultd.Conn, w faultd.Wire, streamed bool) {
			if streamed {
				c.StartStream()
			} else {
				c.Head(200, "Content-Type: application/json", "Transfer-Encoding: chunked")
			}
			c.Chunk(content(w, streamed))
		}, refused(502)).with(func(f *fault) { f.stream = only(either(answered, brokenOff)) }),
		row("u12", "a second response is glued on", func(c *faultd.Conn, w faultd.Wire, streamed bool) {
			good(c, w, streamed)
			c.Send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n" + marker[:8])
		}, answered),
		row("u20a", "a header of 70 KiB", func(c *faultd.Conn, w faultd.Wire, _ bool) {
			c.Whole(200, "application/json", w.Whole, "X-Big: "+strings.Repeat("a", 70<<10))
		}, refused(502)),
		row("u20b", "a header that is none", func(c *faultd.Conn, w faultd.Wire, _ bool) {
			c.Whole(200, "application/json", w.Whole, "no colon here")
		}, refused(502)),
		row("u20c", "a thousand header fields", func(c *faultd.Conn, w faultd.Wire, _ bool) {
			c.Whole(200, "application/json", w.Whole, slices.Repeat([]string{"X-Many: 1"}, 1000)...)
		}, refused(502)),
		row("u31a", "gzip",
			body("gzip", func(w faultd.Wire, streamed bool) string { return zip(content(w, streamed)) }), answered),
		row("u31b", "gzip that is cut", body("gzip", func(w faultd.Wire, streamed bool) string {
			z := zip(content(w, streamed))
			return z[:len(z)/2]
		}), refused(502)).with(func(f *fault) { f.stream = only(either(brokenOff, refused(502))) }),
		row("u31c", "a gzip bomb", body("gzip", func(faultd.Wire, bool) string { return bomb }), refused(502)),
		row("u31d", "an encoding that was not asked for",
			body("br", func(faultd.Wire, bool) string { return "\x0b\x02\x80hello\x03" }), refused(502)),
		row("u32", "interim responses", func(c *faultd.Conn, w faultd.Wire, streamed bool) {
			c.Head(100)
			for range 3 {
				c.Head(103, "Link: </x>")
			}
			good(c, w, streamed)
		}, answered),
	}
}

// reasonLast are the shapes whose answer is whole with the reason why it ended.
var reasonLast = []cases.Shape{cases.Chat, cases.Completions, cases.Gemini}

// spoiltEnd streams a good answer up to its reason, and then ends it otherwise.
func spoiltEnd(c *faultd.Conn, w faultd.Wire, end func(*faultd.Conn)) {
	c.StartStream()
	events := slices.DeleteFunc(w.Stream(), func(e string) bool { return e == "data: [DONE]\n\n" })
	for _, e := range events {
		c.Chunk(e)
	}
	c.Pause(20 * time.Millisecond)
	end(c)
}

func streamFaults() []fault {
	twice := func(c *faultd.Conn, w faultd.Wire, _ bool) {
		events := append(w.Stream(), w.End[len(w.End)-1], w.Delta(90, "late"))
		sendStream(c, strings.Join(events, ""))
	}
	burst := func(c *faultd.Conn, w faultd.Wire, _ bool) {
		var b strings.Builder
		b.WriteString(strings.Join(w.Start, ""))
		for n, p := range faultd.Pieces {
			b.WriteString(w.Delta(n, p))
		}
		for n := range 500 {
			b.WriteString(w.Delta(n+10, strings.Repeat("x", 200)))
		}
		b.WriteString(strings.Join(w.End, ""))
		sendStream(c, b.String())
	}
	endless := func(c *faultd.Conn, w faultd.Wire, _ bool) {
		c.StartStream()
		c.Chunk(w.Begun() + "data: ")
		for range 90 {
			c.Chunk(strings.Repeat("y", 64<<10))
		}
		c.Chunk("\n\n")
		c.EndChunks()
	}
	replaceAll := func(old, new string) func(string) string {
		return func(s string) string { return strings.ReplaceAll(s, old, new) }
	}
	return []fault{
		streamRow("u17", "everything in one packet", burst, answered),
		streamRow("u18a", "CRLF line ends", rewritten(replaceAll("\n", "\r\n")), answered),
		streamRow("u18b", "CR line ends", rewritten(replaceAll("\n", "\r")), answered),
		streamRow("u18c", "more blank lines than needed", rewritten(replaceAll("\n\n", "\n\n\n\n")), answered),
		streamRow("u18d", "byte order mark, comments, retry and id", rewritten(func(s string) string {
			return "\ufeff: hello\n\nretry: 10\nid: 7\n\n" + replaceAll("\n\n", "\nid: 8\n\n: beat\n")(s)
		}), answered),
		streamRow("u18e", "no space after the colon", rewritten(replaceAll("data: ", "data:")), answered),
		streamRow("u18f", "an event over several data lines",
			rewritten(replaceAll(`,"model":"m"`, ",\ndata: \"model\":\"m\"")), answered),
		streamRow("u18g", "no blank line at the end",
			rewritten(func(s string) string { return strings.TrimRight(s, "\n") }), answered),
		streamRow("u19", "a line without end", endless, either(brokenOff, refused(502))),
		streamRow("u21a", "invalid UTF-8 in the text", rewritten(replaceAll("brown", "br\xffwn")), answered),
		streamRow("u21b", "half a surrogate pair in the text", rewritten(replaceAll("brown", `br\ud83dwn`)), answered),
		streamRow("u26", "an error in the middle", func(c *faultd.Conn, w faultd.Wire, _ bool) {
			sendStream(c, w.Begun()+w.Event("overloaded_error", "too many"))
		}, brokenOff),
		streamRow("u25", "an error first", func(c *faultd.Conn, w faultd.Wire, _ bool) {
			sendStream(c, w.Event("overloaded_error", "too many"))
		}, refused(429, 500, 502, 503, 529)),
		streamRow("u27", "events after the end", twice, answered),
		streamRow("u28", "a good end without a reason", func(c *faultd.Conn, w faultd.Wire, _ bool) {
			sendStream(c, strings.Replace(content(w, true), `"finish_reason":"stop"`, `"finish_reason":null`, 1))
		}, either(answered, brokenOff)).
			with(func(f *fault) { f.shapes, f.untranslated = []cases.Shape{cases.Chat, cases.Completions}, true }),
		streamRow("u42", "no [DONE] after the reason",
			func(c *faultd.Conn, w faultd.Wire, _ bool) { spoiltEnd(c, w, (*faultd.Conn).EndChunks) }, answered).
			with(func(f *fault) { f.shapes = reasonLast }),
		streamRow("u43", "a reset after the reason",
			func(c *faultd.Conn, w faultd.Wire, _ bool) { spoiltEnd(c, w, (*faultd.Conn).Reset) }, answered).
			with(func(f *fault) { f.shapes = reasonLast }),
		streamRow("u44", "silence after the reason", func(c *faultd.Conn, w faultd.Wire, _ bool) {
			spoiltEnd(c, w, func(c *faultd.Conn) { c.Stall() })
		}, answered).with(func(f *fault) { f.shapes = reasonLast }),
		streamRow("u45", "an event that is not JSON", func(c *faultd.Conn, w faultd.Wire, _ bool) {
			sendStream(c, w.Begun()+"data: {\"choices\":[\n\n"+strings.Join(w.End, ""))
		}, brokenOff),
		streamRow("u46a", "an event of 1,000 levels", largeEvent(deepValue), brokenOff),
		streamRow("u46b", "an event of 20,000 names", largeEvent(wideValue), brokenOff),
		streamRow("u30", "tool arguments that are no JSON and no id", func(c *faultd.Conn, w faultd.Wire, _ bool) {
			delta := strings.Replace(w.Delta(0, ""), `"content":""`,
				`"tool_calls":[{"index":3,"function":{"name":"f","arguments":"{\"a\":"}}]`, 1)
			sendStream(c, w.Start[0]+delta+strings.Replace(strings.Join(w.End, ""), `"stop"`, `"tool_calls"`, 1))
		}, either(outcome{answer: true, broken: true}, refused(502))).
			with(func(f *fault) { f.shapes, f.untranslated, f.silent = []cases.Shape{cases.Chat}, true, true }),
	}
}

// Values that are beyond the limits of replies.
var (
	deepValue = strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
	wideValue = func() string {
		var b strings.Builder
		for i := range 20_000 {
			fmt.Fprintf(&b, `,"n%d":0`, i)
		}
		return "{" + b.String()[1:] + "}"
	}()
)

// largeEvent sends an event with value after the beginning of an answer.
func largeEvent(value string) func(*faultd.Conn, faultd.Wire, bool) {
	return func(c *faultd.Conn, w faultd.Wire, _ bool) {
		sendStream(c, w.Begun()+"data: {\"x\":"+value+"}\n\n"+strings.Join(w.End, ""))
	}
}

// largeReply is a good answer with value in one more member.
func largeReply(value string) func(*faultd.Conn, faultd.Wire, bool) {
	return func(c *faultd.Conn, w faultd.Wire, _ bool) {
		c.Whole(http.StatusOK, "application/json", strings.Replace(w.Whole, "{", `{"x":`+value+",", 1))
	}
}

func contentFaults() []fault {
	redirect := func(to string) func(*faultd.Conn, faultd.Wire, bool) {
		return func(c *faultd.Conn, _ faultd.Wire, _ bool) {
			c.Whole(307, "text/html", marker,
				"Location: "+strings.Replace(to, "SELF", "http://"+c.Request.Host+c.Request.URL.Path, 1))
		}
	}
	bare := func(code int) func(*faultd.Conn, faultd.Wire, bool) {
		return func(c *faultd.Conn, _ faultd.Wire, _ bool) { c.Head(code) }
	}
	return []fault{
		row("u46c", "a reply of 1,000 levels", largeReply(deepValue),
			refused(502)).with(func(f *fault) { f.stream = nil }),
		row("u46d", "a reply of 20,000 names", largeReply(wideValue),
			refused(502)).with(func(f *fault) { f.stream = nil }),
		row("u22a", "a page instead of an answer", page(200, htmlPage), refused(502)),
		row("u22b", "an empty body", func(c *faultd.Conn, _ faultd.Wire, streamed bool) {
			if streamed {
				sendStream(c, "")
				return
			}
			c.Whole(200, "application/json", "")
		}, refused(502)),
		row("u22c", "no content type", func(c *faultd.Conn, w faultd.Wire, streamed bool) {
			text := content(w, streamed)
			c.Head(200, fmt.Sprintf("Content-Length: %d", len(text)))
			c.Send(text)
		}, either(answered, refused(502))),
		streamRow("u23a", "a whole reply where a stream was asked for",
			func(c *faultd.Conn, w faultd.Wire, _ bool) { good(c, w, false) }, either(answered, refused(502))),
		{id: "u23b", title: "a stream where a whole reply was asked for", whole: only(either(answered, refused(502))),
			play: func(c *faultd.Conn, w faultd.Wire, _ bool) { good(c, w, true) }},
		row("u24", "an error with status 200", func(c *faultd.Conn, w faultd.Wire, _ bool) {
			c.Whole(200, "application/json", w.Error(429, "rate_limit_error", "slow down"))
		}, refused(429, 502)),
		row("u29", "usage that makes no sense", func(c *faultd.Conn, w faultd.Wire, streamed bool) {
			nonsense := strings.NewReplacer(`"output_tokens":5`, `"output_tokens":-5`, `_tokens":8`,
				`_tokens":99999999999`, `Count":5`, `Count":-5`)
			if streamed {
				sendStream(c, nonsense.Replace(content(w, true)))
				return
			}
			c.Whole(200, "application/json", nonsense.Replace(w.Whole))
		}, answered),
		row("u46", "another protocol", func(c *faultd.Conn, _ faultd.Wire, _ bool) {
			c.Head(101, "Connection: Upgrade", "Upgrade: x")
			c.Stall()
		}, refused(502)),
		row("u33a", "no content", bare(204), refused(502)),
		row("u33b", "partial content", func(c *faultd.Conn, w faultd.Wire, _ bool) {
			c.Whole(206, "application/json", w.Whole, "Content-Range: bytes 0-9/100")
		}, refused(502)),
		row("u33c", "not modified", bare(304), refused(502)),
		row("u34a", "a redirect to itself", redirect("SELF"), refused(502)),
		row("u34b", "a redirect to another host", redirect("http://localhost:1/steal"), refused(502)),
	}
}

func statusFaults() []fault {
	var rows []fault
	for _, code := range []int{400, 404, 422} {
		rows = append(
			rows,
			row(fmt.Sprintf("u35-%d", code), "the provider refuses the request",
				status(code, "invalid_request_error"), refused(code)),
		)
	}
	for _, code := range []int{401, 402, 403} {
		rows = append(
			rows,
			row(fmt.Sprintf("u36-%d", code), "the provider refuses our key", status(code, "authentication_error"),
				refused(502)),
		)
	}
	for _, code := range []int{408, 409, 425} {
		rows = append(
			rows,
			row(fmt.Sprintf("u37-%d", code), "the provider wants another attempt",
				status(code, "invalid_request_error"), refused(append(serverError, code, 429)...)),
		)
	}
	for name, value := range map[string]string{"seconds": "7", "date": "Fri, 01 Jan 2100 00:00:00 GMT", "past": "Fri, 01 Jan 1999 00:00:00 GMT", "negative": "-1", "huge": "1000000000", "float": "1.5", "none": ""} {
		line := "Retry-After: " + value
		if value == "" {
			line = "X-Nothing: 1"
		}
		rows = append(
			rows,
			row("u38-"+name, "rate limited", status(429, "rate_limit_error", line),
				refused(429)).with(func(f *fault) { f.check = retryAfter }),
		)
	}
	for _, code := range []int{500, 502, 503, 504} {
		id := fmt.Sprintf("u39-%d", code)
		rows = append(rows,
			row(id+"a", "the provider fails", status(code, "api_error"), refused(code)),
			row(id+"b", "a proxy's page", page(code, htmlPage), refused(code)),
			row(id+"c", "nothing", page(code, ""), refused(code)))
	}
	overloaded := row("u40", "overloaded", status(529, "overloaded_error"), refused(529, 503))
	overloaded.check = func(reply *cases.Reply, _, inbound cases.Shape) string {
		want := http.StatusServiceUnavailable
		if inbound == cases.Messages {
			want = 529
		}
		if reply.Status != want {
			return fmt.Sprintf("status %d, want %d for a client of shape %s", reply.Status, want, inbound)
		}
		return ""
	}
	return append(rows, overloaded)
}

// retryAfter checks that Retry-After is absent or at most a minute, in whole seconds.
func retryAfter(reply *cases.Reply, _, _ cases.Shape) string {
	value := reply.Header.Get("Retry-After")
	if value == "" {
		return ""
	}
	var seconds int
	if _, err := fmt.Sscanf(value, "%d", &seconds); err != nil || fmt.Sprint(seconds) != value || seconds < 0 ||
		seconds > 60 {
		return fmt.Sprintf("Retry-After is %q, want 0 to 60 seconds", value)
	}
	return ""
}
