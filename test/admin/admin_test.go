package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"stagedoor/test/harness"
)

const adminToken = "the-token-of-administration"

// office is a gateway whose models have a price, and its operator.
type office struct {
	t      *testing.T
	config harness.Config
	gate   *harness.Gateway
}

func open(t *testing.T) *office {
	t.Helper()
	c := harness.CatchAll(harness.Provider{Shape: "sandbox"})
	m := c.Models["*"]
	m.Price = &harness.Price{Input: 1, Output: 2} // a micro-dollar a token, and two
	c.Models["*"] = m
	c.Data, c.Admin = t.TempDir(), &harness.Admin{Token: adminToken}
	return &office{t: t, config: c}
}

func (o *office) start() {
	o.t.Helper()
	o.gate = harness.Start(o.t, o.config)
}

// launch starts a gateway that the test kills.
func (o *office) launch() {
	o.t.Helper()
	var err error
	if o.gate, err = harness.Launch(harness.Binary(o.t), o.config); err != nil {
		o.t.Fatal(err)
	}
}

type answer struct {
	status int
	text   string
	id     string
}

// into reads the answer.
func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.text), v); err != nil {
		t.Fatalf("%d %s: %v", a.status, a.text, err)
	}
}

func (o *office) send(key, method, path, body string) answer {
	o.t.Helper()
	r, err := http.NewRequest(method, o.gate.URL+path, strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return answer{res.StatusCode, string(text), res.Header.Get("X-Request-Id")}
}

// api calls the API and wants success.
func (o *office) api(method, path, body string, out any) {
	o.t.Helper()
	a := o.send(adminToken, method, "/admin/v1"+path, body)
	if a.status >= 300 {
		o.t.Fatalf("%s %s: %d %s", method, path, a.status, a.text)
	}
	a.into(o.t, out)
}

// command runs the program on the data directory.
func (o *office) command(args ...string) string {
	o.t.Helper()
	c := exec.Command(harness.Binary(o.t), append(args, "--data", o.config.Data)...)
	var out, failed bytes.Buffer
	c.Stdout, c.Stderr = &out, &failed
	if err := c.Run(); err != nil {
		o.t.Fatalf("stagedoor %s: %v\n%s", strings.Join(args, " "), err, failed.String())
	}
	return out.String()
}

// chat makes a request and returns what it must have cost.
func (o *office) chat(key, prompt string) (cost int64, a answer) {
	o.t.Helper()
	a = o.send(key, "POST", "/v1/chat/completions",
		fmt.Sprintf(`{"model":"m","max_tokens":50,"messages":[{"role":"user","content":%q}]}`, prompt))
	var reply struct {
		Usage struct {
			Prompt     int64 `json:"prompt_tokens"`
			Completion int64 `json:"completion_tokens"`
		} `json:"usage"`
	}
	a.into(o.t, &reply)
	return reply.Usage.Prompt + 2*reply.Usage.Completion, a
}

// figures hold the amounts that all views of an account must agree on.
type figures struct {
	spent, available, keySpent, usage, receipts int64
	requests                                    int64
}

// balance is an account as the API shows it.
type balance struct{ Spent, Available, Held int64 }

// settled waits until the charges of a user's requests are written, which is shortly after their replies.
func (o *office) settled(user string) (account balance) {
	o.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if o.api("GET", "/accounts/"+user, "", &account); account.Held == 0 {
			return account
		}
		if time.Now().After(deadline) {
			o.t.Fatalf("%d is held while nothing is under way", account.Held)
		}
	}
}

func (o *office) figures(user, key string) (f figures) {
	o.t.Helper()
	account := o.settled(user)
	var k struct {
		Spent struct{ Total, Requests int64 }
	}
	o.api("GET", "/keys/"+key, "", &k)
	var u struct {
		Total struct{ Amount, Requests int64 }
	}
	o.api("GET", "/usage?user="+user+"&key="+key, "", &u)
	var r struct{ Data []struct{ Charged int64 } }
	o.api("GET", "/receipts?user="+user+"&key="+key, "", &r)
	f = figures{account.Spent, account.Available, k.Spent.Total, u.Total.Amount, 0, u.Total.Requests}
	for _, one := range r.Data {
		f.receipts += one.Charged
	}
	return f
}

// TestWhoSpentWhatIsKnownToTheMicroDollar makes a user, a key and a credit over
// the API, spends, and finds one number everywhere: before a crash, after it, and
// by command with and without a running gateway.
func TestWhoSpentWhatIsKnownToTheMicroDollar(t *testing.T) {
	o := open(t)
	o.launch()
	var made struct {
		ID  string
		Key string
	}
	o.api("POST", "/users", `{"username":"anna"}`, &struct{}{})
	o.api("POST", "/keys", `{"user":"anna","name":"laptop"}`, &made)
	for range 2 { // the second is the first, sent again
		o.api("POST", "/accounts/anna/credits", `{"amount":1000000,"id":"invoice-1"}`, &struct{}{})
	}
	var cost, requests int64
	var last answer
	for i := range 5 {
		var c int64
		c, last = o.chat(made.Key, strings.Repeat("word ", 10*(i+1)))
		if last.status != 200 || c == 0 {
			t.Fatalf("%d %s", last.status, last.text)
		}
		cost += c
		requests++
	}
	want := figures{cost, 1_000_000 - cost, cost, cost, cost, requests}
	if got := o.figures("anna", made.ID); got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	if out := o.command("usage", "--user", "anna", "--json"); !strings.Contains(out, fmt.Sprintf(`"amount": %d`, cost)) {
		t.Errorf("usage --json printed %s, want %d", out, cost)
	}
	if err := o.gate.Kill(); err != nil {
		t.Fatal(err)
	}
	var stopped struct{ Spent, Available int64 }
	answer{text: o.command("credits", "show", "anna", "--json")}.into(t, &stopped)
	if stopped.Spent != want.spent || stopped.Available != want.available {
		t.Errorf("credits show on the stopped gateway printed %+v, want %+v", stopped, want)
	}
	o.start()
	if got := o.figures("anna", made.ID); got != want {
		t.Errorf("after a crash: got %+v, want %+v", got, want)
	}
	var found struct {
		Data []struct {
			Account, Key string
			Charged      int64
		}
	}
	o.api("GET", "/receipts/"+last.id, "", &found)
	if len(found.Data) != 1 || found.Data[0].Account != "anna" || found.Data[0].Key != made.ID {
		t.Errorf("the receipt of %s is %+v", last.id, found)
	}
}

// TestBudgetOfAKeyHoldsAcrossACrash spends a budget up, crashes, and finds it
// spent still; a change by command counts at once.
func TestBudgetOfAKeyHoldsAcrossACrash(t *testing.T) {
	o := open(t)
	o.launch()
	var made struct{ ID, Key string }
	o.api("POST", "/users", `{"username":"anna"}`, &struct{}{})
	o.api("POST", "/keys", `{"user":"anna","budget":{"amount":500,"window":"day"}}`, &made)
	o.command("credits", "add", "anna", "1")
	refused := func() bool {
		t.Helper()
		_, a := o.chat(made.Key, "hello there")
		switch {
		case a.status == 200:
			return false
		case a.status == 429 && strings.Contains(a.text, "insufficient_quota") && strings.Contains(a.text, "budget of $0.0005 a day"):
			return true
		}
		t.Fatalf("%d %s", a.status, a.text)
		return false
	}
	n := 0
	for !refused() {
		if n++; n > 500 {
			t.Fatal("the budget bounds nothing")
		}
	}
	if n == 0 {
		t.Fatal("the budget allows nothing")
	}
	before := o.figures("anna", made.ID)
	if before.keySpent > 500 || before.keySpent != before.spent {
		t.Errorf("spent %+v of a budget of 500", before)
	}
	if err := o.gate.Kill(); err != nil {
		t.Fatal(err)
	}
	o.start()
	if !refused() {
		t.Error("the crash gave the budget back")
	}
	if after := o.figures("anna", made.ID); after.keySpent != before.keySpent {
		t.Errorf("the key had spent %d, now %d", before.keySpent, after.keySpent)
	}
	o.command("keys", "update", made.ID, "--budget", "0")
	if refused() {
		t.Error("a budget that was taken away refuses")
	}
	o.command("keys", "update", made.ID, "--disabled")
	if _, a := o.chat(made.Key, "hello"); a.status != 401 {
		t.Errorf("a disabled key was answered %d %s", a.status, a.text)
	}
	o.command("keys", "update", made.ID, "--disabled=false", "--allow-ip", "192.0.2.1")
	if _, a := o.chat(made.Key, "hello"); a.status != 403 {
		t.Errorf("a key from elsewhere was answered %d %s", a.status, a.text)
	}
}

// TestOnlyTheTokenAdministers tries what else there is.
func TestOnlyTheTokenAdministers(t *testing.T) {
	o := open(t)
	o.start()
	var made struct{ Key string }
	o.api("POST", "/keys", `{}`, &made)
	for name, c := range map[string]struct {
		secret, path string
		status       int
	}{
		"a key of the store":               {made.Key, "/admin/v1/users", 401},
		"a key of the configuration":       {harness.TestKey, "/admin/v1/users", 401},
		"the token at a route for clients": {adminToken, "/v1/models", 401},
		"an unknown path":                  {adminToken, "/admin/v1/nothing", 404},
		"the description":                  {"", "/admin/v1/openapi.json", 200},
	} {
		if a := o.send(c.secret, "GET", c.path, ""); a.status != c.status || !strings.HasPrefix(a.text, "{") {
			t.Errorf("%s: %d %s, want %d", name, a.status, a.text, c.status)
		}
	}
	out := o.command("admin", "token")
	fresh, _, _ := strings.Cut(out, "\n")
	if a := o.send(fresh, "GET", "/admin/v1/users", ""); a.status != 200 {
		t.Errorf("the token that was made by command: %d %s", a.status, a.text)
	}
}

// TestWithoutATokenTheAPISaysHowToSwitchItOn is about the default.
func TestWithoutATokenTheAPISaysHowToSwitchItOn(t *testing.T) {
	o := open(t)
	o.config.Admin = nil
	o.start()
	if a := o.send("x", "GET", "/admin/v1/users", ""); a.status != 403 || !strings.Contains(a.text, "stagedoor admin token") {
		t.Errorf("%d %s", a.status, a.text)
	}
}
