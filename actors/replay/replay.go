// Package replay runs the exchanges of a recording through the translators of this version, without a network, and
// finds what has changed: the requests to the upstream, and the replies to the client. Ids and times are those of the
// recording, so that the same version makes the same bytes.
//
// # Usage
//
// The command "stagedoor replay" makes a Replayer and calls Run for each recording. It finds
// unintended changes of the translators between two versions, because what a recording of the old
// version contains must come out again. Exchanges that had no upstream are counted as skipped.
//
// # What differs legitimately
//
// A change of the translators on purpose shows as a difference, and the recording is then of no use as a
// test. The order of concurrent calls and of the events of their streams is not compared, and neither is what
// follows a cut.
package replay

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"stagedoor/actors/engine"
	"stagedoor/actors/kit"
	"stagedoor/actors/recording"
	"stagedoor/actors/text"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
)

// maxLine bounds a line of a recording. One line has a whole exchange with the bodies of both sides.
const maxLine = 256 << 20

// Result counts the exchanges of a recording.
type Result struct {
	Same, Different int
	// Skipped counts exchanges without an upstream: those that failed before it, and those of the simulator.
	Skipped int
	Ending  *recording.Ending // nil: the recording was cut off
}

// Replayer replays recordings, one at a time.
type Replayer struct {
	texts  *text.Service
	shapes []*shapes.Shape
}

// New returns a Replayer. The caller stops system when it has used it.
func New(system *kit.System, known []*shapes.Shape) (*Replayer, error) {
	e, err := engine.New(engine.Options{System: system, Now: time.Now, Providers: provider})
	if err != nil {
		return nil, err
	}
	env := newEnv(&recording.Exchange{}) // each request has its own
	env.Now = time.Now
	return &Replayer{text.New(e, env, known, nil), known}, nil
}

// provider returns a provider of any name. A DryRun takes the place of its network.
func provider(name string) *engine.Provider {
	return &engine.Provider{Spec: &catalog.Provider{Name: name}}
}

// Run replays a recording and writes the differences to w. The error is that of reading or writing.
func (r *Replayer) Run(ctx context.Context, from io.Reader, w io.Writer) (Result, error) {
	var result Result
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for n := 1; lines.Scan(); n++ {
		if n == 1 {
			var h recording.Header
			if json.Unmarshal(lines.Bytes(), &h) != nil || h.Recording != recording.Version {
				return result, fmt.Errorf("this is not a recording of version %d", recording.Version)
			}
			continue
		}
		var line struct {
			recording.Exchange
			recording.Ending
		}
		switch err := json.Unmarshal(lines.Bytes(), &line); {
		case err != nil:
			return result, fmt.Errorf("line %d is not of a recording: %w", n, err)
		case line.End != "":
			result.Ending = &line.Ending
			continue
		}
		differences, skipped := r.exchange(ctx, &line.Exchange)
		switch {
		case skipped:
			result.Skipped++
		case len(differences) == 0:
			result.Same++
		default:
			result.Different++
		}
		for _, d := range differences {
			if _, err := fmt.Fprintf(w, "line %d, request %s: %s\n", n, line.ID, d); err != nil {
				return result, err
			}
		}
	}
	return result, lines.Err()
}

// exchange replays one exchange and returns the differences. An exchange is replayed as one request with a
// fixed plan: a target for each attempt that counts, so that retries which changed the request happen again.
// Its upstream is a DryRun that answers with the recorded replies.
func (r *Replayer) exchange(ctx context.Context, x *recording.Exchange) (differences []string, skipped bool) {
	attempts := decisive(x.Attempts)
	if len(attempts) == 0 {
		return nil, true
	}
	shape := r.shape(x.Client.Shape)
	if shape == nil {
		return []string{fmt.Sprintf("this version does not know the shape %q", x.Client.Shape)}, false
	}
	in := shapes.Params{Path: x.Client.Path, Model: x.Client.Model, Stream: x.Client.Stream, Array: x.Client.Array,
		Header: x.Client.Header}
	head, err := shape.Check(x.Client.Body, in)
	if err != nil {
		return []string{"the request is refused now: " + err.Error()}, false
	}
	up := new(upstream)
	dry := &engine.DryRun{}
	dry.Answer = up.answer
	spec := &catalog.Provider{Name: attempts[0].Target.Provider, Shape: attempts[len(attempts)-1].Target.Shape}
	var targets []dialogue.Target
	for _, a := range attempts {
		a.Target.Caps.ContextWindow = 0 // the request was sent, so it may be sent again
		up.calls = append(up.calls, a.Calls...)
		spec.Also, targets = append(spec.Also, a.Target.Shape), append(targets, a.Target)
	}
	q := &text.Request{ID: x.ID, Inbound: shape, Mode: shapes.Mode(x.Client.Mode), In: in, Head: head,
		Body: x.Client.Body, Plan: []catalog.Candidate{catalog.Fixed(spec, targets...)}, Translate: x.Client.Translate,
		ReplyID: x.Client.ReplyID, PreviousResponseID: x.Client.Previous, Owner: x.Client.Owner, Dry: dry,
		Env: newEnv(x)}
	last := attempts[len(attempts)-1]
	if last.Tight {
		q.Meter = partialMeter{}
	}
	got := r.run(ctx, q)
	return append(up.differences(), compare(x, last, &got)...), false
}

// decisive returns the attempts that led to the reply: the last one, and those before it at the same target
// that changed the request for it. It returns nil if nothing was sent. All others are left out, because the
// reply does not depend on them.
func decisive(all []recording.Attempt) []recording.Attempt {
	if len(all) == 0 {
		return nil
	}
	last := all[len(all)-1]
	if last.Simulated || last.Target.Shape == "" || len(last.Calls) == 0 {
		return nil
	}
	before := slices.DeleteFunc(slices.Clone(all[:len(all)-1]), func(a recording.Attempt) bool {
		return !a.Amended || a.Target.Provider != last.Target.Provider || a.Target.Model != last.Target.Model
	})
	return append(before, last)
}

// shape returns the shape of that name, or nil.
func (r *Replayer) shape(name dialogue.Shape) *shapes.Shape {
	for _, s := range r.shapes {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// run runs the request and returns the reply as a recording has it, with the end of a failed stream apart in
// Failure.
func (r *Replayer) run(ctx context.Context, q *text.Request) (got recording.Reply) {
	reply := r.texts.Begin(ctx, q)
	for c := range reply.Chunks() {
		switch {
		case c.Err != nil:
			got.Status, got.Error = c.Err.Status, q.Inbound.Envelope(c.Err)
		case c.Failed != nil:
			got.Failure = append(got.Failure, c.Data.B...)
		default:
			got.Body = append(got.Body, c.Data.B...)
		}
		c.Data.Free()
	}
	out := reply.Outcome()
	got.Losses, got.Degraded = out.Losses, out.Degraded
	return got
}

// compare returns how a reply differs from the recorded one. Streams of several calls are not compared, because their
// events come in any order, and only the beginning of replies that were cut off.
func compare(x *recording.Exchange, last recording.Attempt, got *recording.Reply) (differences []string) {
	want := &x.Reply
	if want.Losses != got.Losses || want.Degraded != got.Degraded {
		differences = append(differences, fmt.Sprintf("losses and degradation were %q and are %q",
			want.Losses+" "+want.Degraded, got.Losses+" "+got.Degraded))
	}
	streamed := shapes.Mode(x.Client.Mode) != shapes.Whole
	switch cut := slices.ContainsFunc(last.Calls, func(c recording.Call) bool { return c.Cut != "" }); {
	case len(last.Calls) > 1 && streamed:
		return differences
	case want.Partial || cut:
		got.Body = got.Body[:min(len(got.Body), len(want.Body))]
		return append(differences, difference("reply to the client", want.Body, got.Body)...)
	case want.Status != got.Status:
		differences = append(differences, fmt.Sprintf("the status was %d and is %d", want.Status, got.Status))
	}
	differences = append(differences, difference("reply to the client", want.Body, got.Body)...)
	differences = append(differences, difference("end of the failed stream", want.Failure, got.Failure)...)
	return append(differences, difference("error to the client", want.Error, got.Error)...)
}

// difference describes the first difference between two texts.
func difference(what string, recorded, now []byte) []string {
	if bytes.Equal(recorded, now) {
		return nil
	}
	at := 0
	for at < min(len(recorded), len(now)) && recorded[at] == now[at] {
		at++
	}
	const before, shown = 40, 120
	part := func(b []byte) string {
		from := min(max(at-before, 0), len(b))
		return strconv.QuoteToGraphic(string(bytes.ToValidUTF8(b[from:min(from+shown, len(b))], nil)))
	}
	return []string{fmt.Sprintf("the %s differs at byte %d\n  recorded: %s\n  now:      %s", what, at, part(recorded),
		part(now))}
}

// partialMeter is the meter of a request whose account could pay only for a part of its reply.
type partialMeter struct{}

// Begin implements text.Meter.
func (partialMeter) Begin(context.Context, *catalog.Candidate, int) (bool, *dialogue.Error) {
	return true, nil
}

// Another implements text.Meter.
func (t partialMeter) Another() text.Meter { return t }

// Progress implements text.Meter.
func (partialMeter) Progress(*text.Outcome) bool { return false }

// Settle implements text.Meter.
func (partialMeter) Settle(context.Context, *text.Outcome) *dialogue.Error { return nil }
