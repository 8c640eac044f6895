package portal_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/money"
	"stagedoor/state/requestlog"
	"stagedoor/state/work"
)

// charge settles a request today.
func (h *fixture) charge(account, key, model string, micros int64, scopes ...string) {
	h.t.Helper()
	receipt := &money.Receipt{Request: fmt.Sprintf("req_%s_%s_%d", key, model, micros), Key: key, Model: model,
		Scopes: scopes, Usage: money.ReceiptUsage{Input: 10, Output: 20}}
	postings := []money.Posting{{Kind: money.Credit, Amount: micros},
		{Kind: money.Settle, Amount: micros, Receipt: receipt}}
	_, results, err := money.CommitPostings(h.t.Context(), h.state, account, postings)
	if err != nil || results[1].Err != nil {
		h.t.Fatal(err, results)
	}
}

// team makes a group with anna in it, whose budget is ten dollars a month.
func (h *fixture) team() identity.Group {
	h.t.Helper()
	amount, window := int64(10_000_000), budget.WindowMonth
	g, err := h.registry.CreateGroup(h.t.Context(), "team@home", tokens.CeilingChange{
		Budget: tokens.BudgetChange{Amount: &amount, Window: &window}})
	if err == nil {
		_, err = h.registry.AddMember(h.t.Context(), g.ID, "anna")
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return g
}

func TestSpendingIsDividedByGroupUserKeyAndModelFromTheLedger(t *testing.T) {
	h := newFixture(t)
	g := h.team()
	h.charge("anna", "key_a", "large", 9_200_000, g.Scope().Name())
	h.charge("root", "key_r", "small", 200_000)
	h.charge("root", "cfg_deploy", "small", 100_000)
	h.user("ben", false)
	h.charge("ben", "key_b", "small", 100_000)
	root := h.signedIn("root")
	for query, want := range map[string][]string{
		"": {"team@home", "No group", "92 % of $10.00 a month", "$9.60", "Forecast for the month", `>2</td>`,
			"mostly from key", "from the ledger", "the group that they are in now", "of $10.00 a month for all groups"},
		"?by=user":                {"anna", "root", "$9.20"},
		"?by=key":                 {"key_a", "key_r", ">deploy<"},
		"?by=model&show=tokens":   {"large", "small"},
		"?by=model&show=requests": {"large"},
		"?group=" + fmt.Sprint(g.ID) + "&by=user": {"Spend of <bdi>team@home", "anna", "q=group%3A%22team%40home%22"},
		"?user=root&by=model":                     {"Spend of <bdi>root", "small", "q=user%3A%22root%22"},
	} {
		root.get("/admin/spend" + query)
		for _, text := range want {
			if !strings.Contains(root.page, text) {
				t.Errorf("%s lacks %q", query, text)
			}
		}
		if strings.HasPrefix(query, "?user=root") && strings.Contains(root.page, "large") {
			t.Errorf("%s shows what others used", query)
		}
		if len(root.page) > 60_000 {
			t.Errorf("%s has %d bytes", query, len(root.page))
		}
	}
	root.expect(root.get("/admin/spend?group=99"), http.StatusNotFound, "")
	if root.get("/admin/spend?by=user&group=" + fmt.Sprint(g.ID)); strings.Contains(root.page, ">root</bdi></a>") {
		t.Error("the spending of a group has a user outside of it")
	}
	anna := h.signedIn("anna")
	anna.expect(anna.get("/admin/spend.csv"), http.StatusNotFound, "")
	anna.expect(anna.get("/account/usage"), http.StatusOK, "Budget of your group")
	anna.expect(anna.get("/account/usage"), http.StatusOK, "Receipts")
	anna.expect(anna.get("/account/usage?receipts=99999999"), http.StatusOK, "Usage")
}

func TestSpendingByProviderAndAppAndHourIsFromTheLogAndSaysWhatItLacks(t *testing.T) {
	h := newFixture(t)
	h.charge("anna", "key_a", "large", 5_000_000)
	h.requests.spent = []requestlog.Spent{
		{Owner: "user:anna", Key: "key_a", Model: "large", Provider: "openai", App: "=cmd", Requests: 2,
			MicroUSD: 4_000_000},
		{Owner: "user:root", Key: "key_r", Model: "small", Provider: "azure", App: "curl", Requests: 1,
			MicroUSD: 500_000},
		{Step: -1, Owner: "user:anna", Key: "key_a", Provider: "openai", Requests: 1, MicroUSD: 1_000_000},
	}
	root := h.signedIn("root")
	root.get("/admin/spend?by=provider")
	for _, text := range []string{"openai", "azure", "$4.50", "It lacks $0.50 of the $5.00", "from the log of requests",
		`provider%3A%22openai%22`} {
		if !strings.Contains(root.page, text) {
			t.Errorf("by provider lacks %q:\n%s", text, root.page)
		}
	}
	root.expect(root.get("/admin/spend?by=app"), http.StatusOK, "curl")
	today := time.Now().UTC().Format(time.DateOnly)
	root.expect(root.get("/admin/spend?by=model&from="+today+"&to="+today), http.StatusOK, "00:00 UTC")
	root.get("/admin/spend.csv?by=app")
	rows, err := csv.NewReader(strings.NewReader(root.page)).ReadAll()
	if err != nil || len(rows) != 3 || rows[0][2] != "app" || rows[1][2] != "'=cmd" || rows[1][7] != "4.00" {
		t.Errorf("%v, %q", err, rows)
	}
	anna := h.signedIn("anna")
	anna.expect(anna.get("/account/usage?by=provider"), http.StatusOK, "openai")
	if strings.Contains(anna.page, "azure") {
		t.Error("anna sees what root used")
	}
	h.requests.off = true // without a log there are only the dimensions of the ledger
	root.expect(root.get("/admin/spend?by=model&from="+today+"&to="+today), http.StatusOK, "large")
	if strings.Contains(root.page, `href="/requests?`) {
		t.Error("figures lead to a log that is not kept")
	}
}

func TestTheExportedWeeksEndWithTheReport(t *testing.T) {
	h := newFixture(t)
	h.charge("anna", "key_a", "large", 5_000_000)
	root, today := h.signedIn("root"), time.Now().UTC()
	root.get(fmt.Sprintf("/admin/spend.csv?by=model&from=%s&to=%s", today.AddDate(0, 0, -100).Format(time.DateOnly),
		today.Format(time.DateOnly)))
	rows, err := csv.NewReader(strings.NewReader(root.page)).ReadAll()
	end := today.AddDate(0, 0, 1).Format(time.DateOnly) + "T00:00:00Z"
	if err != nil || len(rows) != 2 || rows[1][1] != end {
		t.Errorf("%v, %q, want the end %s", err, rows, end)
	}
}

func TestAMonthIsComparedWithTheSameDaysOfTheMonthBefore(t *testing.T) {
	h := newFixture(t)
	h.charge("anna", "key_a", "large", 5_000_000)
	root := h.signedIn("root")
	now := time.Now().UTC()
	root.expect(root.get("/admin/spend?by=model"), http.StatusOK, now.Format("January 2006"))
	next := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	root.expect(root.get(fmt.Sprintf("/admin/spend?by=model&from=%s&to=%s", next.Format(time.DateOnly),
		next.AddDate(0, 1, -1).Format(time.DateOnly))), http.StatusOK, "Nothing was used in this time")
	root.expect(root.get("/admin/spend?from=2020-01-01&to=2020-12-31"), http.StatusOK, "1 Jan – 31 Dec 2020")
}

func TestAdministratorsSendATestOfAlerts(t *testing.T) {
	h := newFixture(t)
	work.SetWebhooks(h.state, []work.Webhook{{ID: "wha_1", Alerts: true}})
	root, anna := h.signedIn("root"), h.signedIn("anna")
	root.expect(root.get("/admin/spend"), http.StatusOK, "Set <code>alerts.url</code>")
	root.expect(root.post("/admin/spend/alerts/test"), http.StatusNotFound, "")
	h.alerts = "ops.<b>example"
	root.expect(root.get("/admin/spend"), http.StatusOK, "ops.&lt;b&gt;example")
	anna.expect(anna.post("/admin/spend/alerts/test"), http.StatusNotFound, "")
	root.expect(root.post("/admin/spend/alerts/test", "token", "x"), http.StatusForbidden, "")
	root.get("/admin/spend")
	root.sentTo(root.post("/admin/spend/alerts/test"), "/admin/spend?done=alert_sent")
	root.expect(root.get("/admin/spend?done=alert_sent"), http.StatusOK, "on its way")
	sent := 0
	work.Deliveries(h.state.View(), "wha_1", func(d *work.Delivery) bool { sent++; return d.Type == work.AlertTest })
	if sent != 1 {
		t.Errorf("%d deliveries", sent)
	}
}
