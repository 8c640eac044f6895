package ops

import (
	"bufio"
	"context"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"stagedoor/test/cases"
	"stagedoor/test/harness"
)

const (
	// work takes some seconds, so that a restart comes in the middle of it.
	work = `{"model":"m","input":"[sandbox: pace=20 tokens=60] tell me a story","background":true,"stream":%}`
	rich = "1000.00"
)

// priced is a gateway whose user pays for tokens.
func priced(t *testing.T) (binary string, c harness.Config) {
	t.Helper()
	binary, c = harness.Binary(t), sandbox(t.TempDir(), "100ms")
	c.Keys = []harness.Key{{Key: harness.TestKey, Name: "test", User: "anna"}}
	model := c.Models["*"]
	model.Price = &harness.Price{Input: 1, Output: 10}
	c.Models["*"] = model
	command(t, binary, "users", "create", "anna", "--data", c.Data)
	command(t, binary, "credits", "add", "anna", rich, "--data", c.Data)
	return binary, c
}

func command(t *testing.T, binary string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

type response struct {
	ID     string
	Status string
	Output []struct{ Content []struct{ Text string } }
	Error  *struct{ Message string }
}

func (r *response) text() string {
	if len(r.Output) == 0 || len(r.Output[0].Content) == 0 {
		return ""
	}
	return r.Output[0].Content[0].Text
}

func begin(t *testing.T, g *harness.Gateway) response {
	t.Helper()
	var r response
	if status := ask(t, g, http.MethodPost, "/v1/responses", strings.Replace(work, "%", "false", 1), &r); status != http.StatusOK {
		t.Fatalf("begin: %d %+v", status, r)
	}
	return r
}

func finished(t *testing.T, g *harness.Gateway, id string) (r response) {
	t.Helper()
	await(t, "the end of "+id, func() bool {
		r = response{}
		ask(t, g, http.MethodGet, "/v1/responses/"+id, "", &r)
		return r.Status != "queued" && r.Status != "in_progress"
	})
	return r
}

// spent returns the amounts that anna has paid and still has held.
func spent(t *testing.T, binary string, c harness.Config) string {
	t.Helper()
	var kept []string
	for _, line := range strings.Split(command(t, binary, "credits", "show", "anna", "--data", c.Data), "\n") {
		if strings.HasPrefix(line, "spent") || strings.HasPrefix(line, "held") {
			kept = append(kept, strings.Join(strings.Fields(line), " "))
		}
	}
	return strings.Join(kept, ", ")
}

// A background response goes on in the next process, however the one that began
// it ended, with the same answer and for the same money as an undisturbed one.
func TestABackgroundResponseOutlivesItsProcess(t *testing.T) {
	endings := map[string]func(*testing.T, *harness.Gateway){
		"stopped": stop,
		"killed": func(t *testing.T, g *harness.Gateway) {
			if err := g.Kill(); err != nil {
				t.Error(err)
			}
		},
	}
	binary, c := priced(t)
	g, err := harness.Launch(binary, c)
	launch(t, g, err)
	undisturbed := finished(t, g, begin(t, g).ID)
	stop(t, g)
	price := spent(t, binary, c)
	if undisturbed.Status != "completed" || undisturbed.text() == "" || strings.HasPrefix(price, "spent 0.00,") {
		t.Fatalf("undisturbed: %+v for %s", undisturbed, price)
	}
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			binary, c := priced(t)
			g, err := harness.Launch(binary, c)
			launch(t, g, err)
			id := begin(t, g).ID
			await(t, "its beginning", func() bool {
				var r response
				ask(t, g, http.MethodGet, "/v1/responses/"+id, "", &r)
				return r.Status == "in_progress"
			})
			end(t, g)
			g, err = harness.Launch(binary, c)
			launch(t, g, err)
			if got := finished(t, g, id); got.Status != "completed" || got.text() != undisturbed.text() {
				t.Errorf("it is %+v, undisturbed %+v", got, undisturbed)
			}
			stop(t, g)
			if got := spent(t, binary, c); got != price {
				t.Errorf("it cost %s, undisturbed %s", got, price)
			}
			command(t, binary, "state", "verify", "--data", c.Data)
		})
	}
}

// What goes on is asked again whether it may.
func TestABackgroundResponseEndsWithItsKey(t *testing.T) {
	binary, c := priced(t)
	g, err := harness.Launch(binary, c)
	launch(t, g, err)
	id := begin(t, g).ID
	stop(t, g)
	c.Keys[0].Name = "another" // of the same user, who owns the response
	g, err = harness.Launch(binary, c)
	launch(t, g, err)
	if got := finished(t, g, id); got.Status != "failed" || got.Error == nil ||
		!strings.Contains(got.Error.Message, "API key does not exist any more") {
		t.Errorf("it is %+v, %+v", got, got.Error)
	}
	stop(t, g)
	if got := spent(t, binary, c); got != "spent 0.00, held 0.00" {
		t.Errorf("it cost %s", got)
	}
}

// follow asks for a response whose events come one by one.
func follow(t *testing.T, g *harness.Gateway, method, path, body string) *http.Response {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, g.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+g.Key)
	r, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Without a data directory no later process can go on with a response, so its watcher
// gets a failure.
func TestABackgroundResponseInMemoryFails(t *testing.T) {
	g, err := harness.Launch(harness.Binary(t), sandbox("memory", "100ms"))
	launch(t, g, err)
	r := follow(t, g, http.MethodPost, "/v1/responses", strings.Replace(work, "%", "true", 1))
	stop(t, g)
	reply := cases.ReadReply(r)
	if reply.Aborted || strings.Count(string(reply.Body), "event: response.failed\n") != 1 ||
		strings.Contains(string(reply.Body), "goes on") {
		t.Errorf("the stream ends with %s", reply.Body[max(0, len(reply.Body)-300):])
	}
}

// A client that follows a background response gets an error event at a restart,
// reconnects after the last event and gets the whole answer.
func TestAWatcherComesAgainAfterARestart(t *testing.T) {
	binary, c := priced(t)
	g, err := harness.Launch(binary, c)
	launch(t, g, err)
	r := follow(t, g, http.MethodPost, "/v1/responses", strings.Replace(work, "%", "true", 1))
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	var id, last, seen string
	stopping := make(chan struct{})
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		last = data
		if id == "" {
			id = between(data, `"id":"`, `"`)
			go func() {
				defer close(stopping)
				if err := g.Stop(); err != nil {
					t.Errorf("stop: %v", err)
				}
			}()
		}
		seen = between(data, `"sequence_number":`, ",")
	}
	<-stopping
	if err := lines.Err(); err != nil || between(last, `"type":"`, `"`) != "error" ||
		!strings.Contains(last, "shutting_down") {
		t.Fatalf("the stream ends with %s, %v", last, err)
	}
	g, err = harness.Launch(binary, c)
	launch(t, g, err)
	r = follow(t, g, http.MethodGet, "/v1/responses/"+id+"?stream=true&starting_after="+seen, "")
	defer r.Body.Close()
	var kinds []string
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		if kind, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) < 4 || kinds[len(kinds)-1] != "response.completed" ||
		!strings.Contains(strings.Join(kinds, " "), "response.created") {
		t.Errorf("resumed behind %s, the events are %v", seen, kinds)
	}
	stop(t, g)
}

// between is the text between two others, "" if they are not there.
func between(s, before, after string) string {
	_, s, ok := strings.Cut(s, before)
	if !ok {
		return ""
	}
	s, _, _ = strings.Cut(s, after)
	return s
}
