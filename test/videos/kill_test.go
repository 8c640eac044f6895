package videos

import (
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"stagedoor/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// What a video of four seconds costs, and nothing.
const (
	paid = "spent 0.40, held 0.00"
	free = "spent 0.00, held 0.00"
)

// gateway is a program over a directory that outlives it.
type gateway struct {
	*harness.Gateway
	t      *testing.T
	config harness.Config
}

func open(t *testing.T, p *provider, idempotent bool) *gateway {
	t.Helper()
	c := harness.Config{Data: t.TempDir(), Keys: []harness.Key{{Key: harness.TestKey, Name: "test", User: "anna"}},
		Providers: map[string]harness.Provider{"up": {Shape: "videos", BaseURL: p.url + "/v1", APIKeys: []string{"k"}, Idempotent: idempotent}},
		Models: map[string]harness.Model{"video-*": {Targets: []harness.Target{{Provider: "up", Model: "*"}},
			Price: &harness.Price{PerSecond: 0.1}}}}
	g := &gateway{t: t, config: c}
	g.command("users", "create", "anna", "--data", c.Data)
	g.command("credits", "add", "anna", "10.00", "--data", c.Data)
	g.launch()
	return g
}

func (g *gateway) launch() {
	g.t.Helper()
	var err error
	if g.Gateway, err = harness.Launch(harness.Binary(g.t), g.config); err != nil {
		g.t.Fatal(err)
	}
}

func (g *gateway) command(args ...string) string {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, harness.Binary(g.t), args...).CombinedOutput()
	if err != nil {
		g.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// books returns the amounts that anna has paid and has held. It stops the gateway.
func (g *gateway) books() string {
	g.t.Helper()
	var kept []string
	for _, line := range strings.Split(g.command("credits", "show", "anna", "--data", g.config.Data), "\n") {
		if strings.HasPrefix(line, "spent") || strings.HasPrefix(line, "held") {
			kept = append(kept, strings.Join(strings.Fields(line), " "))
		}
	}
	return strings.Join(kept, ", ")
}

type job struct {
	ID, Status string
	Progress   int
	Error      *struct{ Code string }
}

// ask is false if the gateway did not answer.
func (g *gateway) ask(method, path, body string, into any) bool {
	res, err := g.Send(method, path, body)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 {
		return false
	}
	return json.Unmarshal(b, into) == nil
}

func (g *gateway) list() []job {
	var page struct{ Data []job }
	if !g.ask("GET", "/v1/videos", "", &page) {
		g.t.Fatal("no list")
	}
	return page.Data
}

// A gateway that is killed in any state of a job, and started again, has it made
// once and paid once; or, where that cannot be known, says so and takes no money. With
// -short, a provider that has taken a job honours keys in some states and not in others.
func TestAKilledGatewayLosesNoVideoAndMakesNoneTwice(t *testing.T) {
	create := func(g *gateway) bool { return g.ask("POST", "/v1/videos", `{"prompt":"a cat"}`, &job{}) }
	submitting := func(hold string) func(*gateway, *provider) {
		return func(g *gateway, p *provider) {
			p.holding(hold)
			go create(g)
			<-p.held
		}
	}
	// A client is answered when it is written down that the provider has its job:
	// until then "queued" says less.
	reach := func(status, hold string) func(*gateway, *provider) {
		return func(g *gateway, p *provider) {
			p.holding(hold)
			if !create(g) {
				g.t.Fatal("not created")
			}
			await(g.t, status, func() bool { l := g.list(); return len(l) == 1 && l[0].Status == status && len(p.jobs()) == 1 })
		}
	}
	for i, c := range []struct {
		state string
		until func(*gateway, *provider)
		lost  bool // unless the provider honours keys
	}{
		{"submitting, not heard", submitting("before"), true},
		{"submitting, heard", submitting("after"), true},
		{"queued", reach("queued", "polls"), false},
		{"in progress", reach("in_progress", ""), false},
		{"completed", reach("completed", ""), false},
	} {
		for _, idempotent := range []bool{true, false} {
			if testing.Short() && !c.lost && idempotent == (i%2 == 0) {
				continue // the key matters only while it is not known whether the provider has the job
			}
			name := c.state
			if idempotent {
				name += ", with keys"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := newProvider(t)
				g := open(t, p, idempotent)
				c.until(g, p)
				if err := g.Kill(); err != nil {
					t.Fatal(err)
				}
				p.holding("")
				g.launch()
				var last job
				await(t, "the end", func() bool {
					l := g.list()
					if len(l) == 1 {
						last = l[0]
					}
					return last.Status == "completed" || last.Status == "failed"
				})
				if err := g.Stop(); err != nil {
					t.Error(err)
				}
				judge(t, p, &last, c.lost && !idempotent)
				want := paid
				if last.Status == "failed" {
					want = free
				}
				if got := g.books(); got != want {
					t.Errorf("%s for a video that %s", got, last.Status)
				}
			})
		}
	}
}

func judge(t *testing.T, p *provider, last *job, lost bool) {
	t.Helper()
	made := p.jobs()
	switch {
	case lost && (last.Status != "failed" || last.Error == nil || last.Error.Code != "submission_lost" || len(made) > 1):
		t.Errorf("ended as %+v, made %+v", last, made)
	case !lost && (last.Status != "completed" || last.Progress != 100 || len(made) != 1 || made[0].Key != last.ID):
		t.Errorf("ended as %+v, made %+v", last, made)
	}
}

// Killed again and again with many jobs under way.
func TestManyKillsLoseNothing(t *testing.T) {
	t.Parallel()
	const jobs, kills = 12, 3
	p := newProvider(t)
	g := open(t, p, true)
	for range jobs {
		if !g.ask("POST", "/v1/videos", `{"prompt":"a cat"}`, &job{}) {
			t.Fatal("not created")
		}
	}
	for range kills {
		time.Sleep(700 * time.Millisecond)
		if err := g.Kill(); err != nil {
			t.Fatal(err)
		}
		g.launch()
	}
	await(t, "the end of all", func() bool {
		for _, j := range g.list() {
			if j.Status != "completed" {
				return false
			}
		}
		return true
	})
	if n := len(g.list()); n != jobs {
		t.Errorf("%d jobs", n)
	}
	if err := g.Stop(); err != nil {
		t.Error(err)
	}
	if made := p.jobs(); len(made) != jobs {
		t.Errorf("%d made", len(made))
	}
	if got := g.books(); got != "spent 4.80, held 0.00" {
		t.Error(got)
	}
}
