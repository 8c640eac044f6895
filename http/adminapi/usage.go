package adminapi

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/state/money"
)

// usageRoutes sum up requests, tokens and money by day, user, key and model.
var usageRoutes = []route{
	{method: "GET", path: "/usage", name: "getUsage", group: "usage",
		summary: "Report usage and spending. Requests for which no money was held are not counted", out: Usage{},
		query: []param{{name: "per", doc: "columns of the report, some of day, user, key and model, separated by " +
			"commas; default day,model"},
			{name: "user", doc: "only this username"}, {name: "key", doc: "only this key's id"},
			{name: "model", doc: "only this model, as requested by clients"},
			{name: "from", doc: "the first day; default 29 days before to"},
			{name: "to", doc: "the last day; default today, UTC"}},
		status: http.StatusOK, serve: (*requestContext).getUsage},
}

// groupings maps the words of the parameter per to the columns of the report.
var groupings = map[string]money.Per{"day": money.PerDay, "user": money.PerAccount, "key": money.PerKey,
	"model": money.PerModel}

// parsePer returns the columns that the parameter per asks for.
func parsePer(text string) (money.Per, error) {
	if text == "" {
		return money.PerDay | money.PerModel, nil
	}
	var p money.Per
	for word := range strings.SplitSeq(text, ",") {
		d, ok := groupings[word]
		if !ok {
			return 0, dialogue.Invalid("per", "must be some of day, user, key and model, separated by commas")
		}
		p |= d
	}
	return p, nil
}

// usageDays is the number of days that a report covers if the query names none.
const usageDays = 30

// getUsage handles GET /usage.
func (c *requestContext) getUsage() (any, error) {
	p, err := parsePer(c.query.Get("per"))
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
		// The total is that of the rows, so that the two cannot differ.
		total.Add(u)
		out.Data = append(out.Data, UsageRow{Day: u.Day, User: u.Account, Key: u.Key, Model: u.Model,
			UsageSum: usageSum(u)})
	}
	out.Total = usageSum(&total)
	return out, nil
}

// usageSum returns the sums of a row as the API shows them.
func usageSum(u *money.UsageRow) UsageSum {
	return UsageSum{Requests: u.Requests, InputTokens: u.InputTokens, CachedTokens: u.CachedTokens,
		OutputTokens: u.OutputTokens,
		Images:       u.Images, Seconds: u.Seconds, Amount: u.Amount}
}
