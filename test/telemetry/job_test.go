package telemetry

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// A job is created by one process, goes on in a second after a kill and ends in a third
// after a stop. Each step is linked to the request that asked for the video, whichever
// process made it, and is part of no other process's trace.
func TestStepsOfVideoJobsAreLinkedOverRestarts(t *testing.T) {
	for _, protocol := range []string{"grpc", "http"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			c, u := startCollector(t), newUpstream(t)
			data, err := os.MkdirTemp("", "stagedoor-") // short enough for a socket
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(data) })
			g := launch(t, data, u, traces(exports(c)[protocol]))
			id, status, reply := g.ask(
				"/v1/videos",
				fmt.Sprintf(`{"model":"clips","prompt":%q,"seconds":"4"}`, secretPrompt+" [sandbox: job=15s]"),
			)
			if status != 200 {
				t.Fatalf("status %d: %s", status, reply)
			}
			var made struct{ ID string }
			if err := json.Unmarshal([]byte(reply), &made); err != nil {
				t.Fatalf("%v: %s", err, reply)
			}
			server, _ := c.request(t, id)
			job := jobOf{id: made.ID, asked: server}
			job.await(t, c, "video.poll", nil)
			g.kill()

			g = launch(t, data, u, traces(exports(c)[protocol]))
			second := job.await(t, c, "video.poll", job.processes(c))
			g.stop()

			first := job.processes(c)
			g = launch(t, data, u, traces(exports(c)[protocol]))
			settle := job.await(t, c, "video.settle", nil)
			if first[settle.process] {
				t.Error("the third process settled nothing")
			}
			if got := text(settle.Span, "stagedoor.job.status"); got != "completed" {
				t.Errorf("it ended as %q", got)
			}
			if got := text(second.Span, "gen_ai.operation.name"); got != text(settle.Span, "gen_ai.operation.name") ||
				got == "" {
				t.Errorf("a step is %q", got)
			}
			transitions := ""
			for _, s := range job.steps(c) {
				for _, e := range s.Events().All() {
					to, _ := e.Attributes().Get("stagedoor.job.status")
					transitions += " " + to.AsString()
				}
			}
			for _, want := range []string{"queued", "in_progress", "finalizing", "completed"} {
				if !strings.Contains(transitions, want) {
					t.Errorf("no step tells that the job became %s: %s", want, transitions)
				}
			}
			nothingSecret(t, spansOf(job.steps(c)), g)
		})
	}
}

// jobOf is a job and the request that asked for it.
type jobOf struct {
	id    string
	asked ptrace.Span
}

// step is a span with the process that it is of.
type step struct {
	ptrace.Span
	process string
}

func spansOf(all []step) (spans []ptrace.Span) {
	for _, s := range all {
		spans = append(spans, s.Span)
	}
	return spans
}

// steps are the spans of the job that came so far, whichever process they are of.
func (j *jobOf) steps(c *collector) (all []step) {
	for _, td := range c.traces.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			process, _ := rs.Resource().Attributes().Get("service.instance.id")
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					if text(s, "stagedoor.job.id") == j.id {
						all = append(all, step{s, process.AsString()})
					}
				}
			}
		}
	}
	return all
}

// processes are those whose steps have come.
func (j *jobOf) processes(c *collector) map[string]bool {
	seen := make(map[string]bool)
	for _, s := range j.steps(c) {
		seen[s.process] = true
	}
	return seen
}

// await waits for a step of a name by a process that is not among known. All steps
// that come meanwhile must be linked to the request.
func (j *jobOf) await(t *testing.T, c *collector, name string, known map[string]bool) step {
	t.Helper()
	own := make(map[pcommon.TraceID]pcommon.SpanID)
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		for _, s := range j.steps(c) {
			links := s.Links()
			if links.Len() != 1 || links.At(0).SpanID() != j.asked.SpanID() ||
				links.At(0).TraceID() != j.asked.TraceID() {
				t.Fatalf("%s of process %s has %d links, want one to the request", s.Name(), s.process, links.Len())
			}
			if before, ok := own[s.TraceID()]; s.TraceID() == j.asked.TraceID() || !s.ParentSpanID().IsEmpty() ||
				ok && before != s.SpanID() {
				t.Fatalf("%s of process %s is part of another trace, want one of its own", s.Name(), s.process)
			}
			own[s.TraceID()] = s.SpanID()
			if s.Name() == name && !known[s.process] {
				return s
			}
		}
	}
	t.Fatalf("no %s of job %s came within 60 s", name, j.id)
	return step{}
}
