package adminapi

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/state/money"
)

var usageRoutes = []route{
	{method: "GET", path: "/usage", name: "getUsage", group: "usage", summary: "Sum up what was used and spent, to the micro-dollar. Requests that cost nobody anything are not counted", out: Usage{},
		query: []param{{name: "per", doc: "what the rows tell apart, any of day, user, key, model with commas; default day,model"},
			{name: "user", doc: "only this username"}, {name: "key", doc: "only this key's id"}, {name: "model", doc: "only this model, as it was asked for"},
			{name: "from", doc: "the first day; default 29 days before to"}, {name: "to", doc: "the last day; default today, UTC"}},
		status: http.StatusOK, serve: (*call).getUsage},
}

var distinctions = map[string]money.Per{"day": money.PerDay, "user": money.PerAccount, "key": money.PerKey,
	"model": money.PerModel}

func per(text string) (money.Per, error) {
	if text == "" {
		return money.PerDay | money.PerModel, nil
	}
	var p money.Per
	for word := range strings.SplitSeq(text, ",") {
		d, ok := distinctions[word]
		if !ok {
			return 0, dialogue.Invalid("per", "must be some of day, user, key and model, with commas between them")
		}
		p |= d
	}
	return p, nil
}

// usageDays is the time of a query that does not say.
const usageDays = 30

func (c *call) getUsage() (any, error) {
	p, err := per(c.query.Get("per"))
	if err != nil {
		return nil, err
	}
	to, given, err := c.time("to")
	if err != nil {
		return nil, err
	}
	if !given {
		to = c.State.View().Now()
	}
	from, given, err := c.time("from")
	if err != nil {
		return nil, err
	}
	if !given {
		from = to.AddDate(0, 0, 1-usageDays)
	}
	if from.After(to) || to.Sub(from) > (money.MaxUsageDays-1)*24*time.Hour {
		return nil, dialogue.Invalid("from", fmt.Sprintf("must not be after to, nor more than %d days before it",
			money.MaxUsageDays-1))
	}
	rows, err := money.QueryUsage(c.r.Context(), c.State,
		money.UsageQuery{Account: c.query.Get("user"), Key: c.query.Get("key"), Model: c.query.Get("model"),
			From: from, To: to, Per: p})
	if err != nil {
		return nil, err
	}
	out := Usage{From: from.UTC().Format(time.DateOnly), To: to.UTC().Format(time.DateOnly), Data: []UsageRow{}}
	var total money.UsageRow
	for i := range rows {
		u := &rows[i]
		total.Add(u)
		out.Data = append(out.Data, UsageRow{Day: u.Day, User: u.Account, Key: u.Key, Model: u.Model, UsageSum: usageSum(u)})
	}
	out.Total = usageSum(&total)
	return out, nil
}

func usageSum(u *money.UsageRow) UsageSum {
	return UsageSum{Requests: u.Requests, InputTokens: u.InputTokens, CachedTokens: u.CachedTokens, OutputTokens: u.OutputTokens,
		Images: u.Images, Seconds: u.Seconds, Amount: u.Amount}
}
