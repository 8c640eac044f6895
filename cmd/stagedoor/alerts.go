package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/actors/alerts"
	"stagedoor/actors/webhook"
	"stagedoor/cmd/stagedoor/config"
	"stagedoor/http/web/mailer"
	"stagedoor/state/journal"
	"stagedoor/state/work"
)

// startAlerts starts the watcher that looks for alerts until it is closed. Without the setting alerts, none are sent.
func (g *gateway) startAlerts() *alerts.Watcher {
	return alerts.Start(alerts.Options{Logger: g.logger, State: g.state, Ledger: g.runtime.Ledger(),
		Providers: g.runtime.Providers, Disk: func() (free, refused int64, ok bool) {
			free = g.store.Stats().DiskFree
			return free, journal.DefaultLowWater, free >= 0
		}})
}

// endpoints returns where the events of a configuration go.
func (g *gateway) endpoints(c *config.Config) []webhook.Endpoint {
	all := c.Endpoints()
	for i := range all {
		if to := all[i].Mail; to != "" {
			all[i].Send = func(ctx context.Context, d *work.Delivery) error {
				return errors.Join(g.mail.Send(ctx, []mailer.Mail{alertMail(to, g.origin, d)})...)
			}
		}
	}
	return all
}

// alertMail returns the mail of an alert: what has happened, where to look for more, and the data of the event.
func alertMail(to, origin string, d *work.Delivery) mailer.Mail {
	data := gjson.ParseBytes(d.Data)
	what, page := "Alerts of this gateway arrive here", "/admin/spend"
	switch d.Type {
	case work.AlertBudget:
		scope := data.Get("kind").String() + " " + cmp.Or(data.Get("name").String(), data.Get("id").String())
		what = fmt.Sprintf("%s %% of the budget of %s are spent", data.Get("percent"), scope)
		if data.Get("refused_usd").Exists() {
			what = "The budget of " + scope + " refuses requests"
		}
	case work.AlertKeyRefused:
		what, page = fmt.Sprintf("Provider %s refused a key", data.Get("provider")), "/flow/providers"
	case work.AlertUnavailable:
		what, page = fmt.Sprintf("Provider %s fails and gets no calls", data.Get("provider")), "/flow/providers"
	case work.AlertDisk:
		what, page = "The disk of the gateway fills", "/flow"
	}
	var facts strings.Builder
	data.ForEach(func(name, value gjson.Result) bool {
		fmt.Fprintf(&facts, "%s: %s\n", strings.ReplaceAll(name.String(), "_", " "), value)
		return true
	})
	return mailer.Mail{To: to, Subject: what, Text: fmt.Sprintf("%s (%s).\n\n%s%s\n\n%s\n%s, event %s\n", what,
		d.Created.UTC().Format("2 January 2006, 15:04 UTC"), origin, page, facts.String(), d.Type, d.Event)}
}
