package main

import (
	"strings"
	"testing"
	"time"

	"stagedoor/cmd/stagedoor/config"
	"stagedoor/http/web/mailer"
	"stagedoor/http/web/mailer/mailertest"
	"stagedoor/state/work"
)

func TestAlertsGoByMail(t *testing.T) {
	server := mailertest.Start(t, mailer.StartTLS)
	g := &gateway{mail: mailer.New(server.Options(mailer.StartTLS)), origin: "https://gw.example.com"}
	endpoints := g.endpoints(&config.Config{Alerts: config.Alerts{URL: "https://h/x", Mail: "ops@example.com"}})
	if len(endpoints) != 2 || endpoints[0].Send != nil || !endpoints[1].Alerts || endpoints[0].ID == endpoints[1].ID {
		t.Fatalf("%+v", endpoints)
	}
	for _, d := range []work.Delivery{
		{Type: work.AlertBudget, Data: []byte(`{"budget_usd":10,"kind":"key","name":"lap\u003ctop","percent":80}`)},
		{Type: work.AlertBudget, Data: []byte(`{"kind":"group","id":"team","percent":100,"refused_usd":4}`)},
		{Type: work.AlertKeyRefused, Data: []byte(`{"provider":"openai"}`)},
		{Type: work.AlertUnavailable, Data: []byte(`{"provider":"openai"}`)},
		{Type: work.AlertDisk, Data: []byte(`{"free_bytes":900}`)},
		{Type: work.AlertTest, Data: []byte(`{"message":"hello"}`)},
	} {
		d.Event, d.Created = "evt_1", time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		if err := endpoints[1].Send(t.Context(), &d); err != nil {
			t.Fatal(err)
		}
	}
	want := [][2]string{
		{"80 % of the budget of key lap<top are spent", "https://gw.example.com/admin/spend\n\nbudget usd: 10\n"},
		{"The budget of group team refuses requests", "refused usd: 4\n"},
		{"Provider openai refused a key", "https://gw.example.com/flow/providers\n\nprovider: openai\n"},
		{"Provider openai fails and gets no calls", "/flow/providers"},
		{"The disk of the gateway fills", "free bytes: 900\n"},
		{"Alerts of this gateway arrive here", "message: hello\n"},
	}
	taken := server.Taken()
	if len(taken) != len(want) {
		t.Fatalf("%d mails", len(taken))
	}
	for i, m := range taken {
		text := strings.ReplaceAll(m.Text, "\r", "")
		if m.To != "ops@example.com" || m.Subject != want[i][0] || !strings.Contains(text, want[i][1]) ||
			!strings.Contains(text, "20 November 2026, 12:00 UTC") {
			t.Errorf("%+v", m)
		}
	}
}
