package admincli

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/adminapi"
)

// byKey says how the flag --key of reports names a key.
const byKey = "by its id, a prefix of the id, or its name if it has no user; cfg_NAME: a key of the file"

// usageCommand returns "stagedoor usage", a report of requests, tokens and money by the daily records of usage.
func (a app) usageCommand() *cobra.Command {
	var o *datadir.Flags
	var per []string
	var user, key, model, from, to string
	var asJSON bool
	c := &cobra.Command{
		Use: "usage", Short: "Sum up requests, tokens and money", Args: cli.NoArgs,
		Long: `Sum up requests, tokens and money, to the micro-dollar, per day, user, key or
model. Requests without a price are counted with their tokens. Days are in UTC.`,
		Example: `  stagedoor usage
  stagedoor usage --per user --from 2026-01-01 --to 2026-01-31
  stagedoor usage --user anna --per day,key --json`,
		RunE: func(c *cobra.Command, _ []string) error {
			return callAndPrint(c, a, o, asJSON, apiCall[adminapi.Usage]{method: "GET", path: "/usage",
				key: key,
				query: queryOf("per", strings.Join(per, ","), "user", user, "model", model,
					"from", from, "to", to),
				show: func(out io.Writer, u *adminapi.Usage) error { return printUsage(out, u, per) }})
		},
	}
	o = datadir.AddFlags(c, a.App)
	f := c.Flags()
	f.StringSliceVar(&per, "per", []string{"day", "model"}, "columns to group by: one or more of day, user, key, model")
	f.StringVar(&user, "user", "", "only this user")
	f.StringVar(&key, "key", "", "only this key, "+byKey)
	f.StringVar(&model, "model", "", "only this model, by the name that clients sent")
	f.StringVar(&from, "from", "", "the first day (default 29 days before the last)")
	f.StringVar(&to, "to", "", "the last day (default today)")
	jsonFlag(c, &asJSON)
	cli.CompleteWords(c, "per", "day", "user", "key", "model")
	return c
}

// printUsage prints the sums with a column for each word of per, in a fixed order whatever order was asked for, and a
// last line with the total.
func printUsage(out io.Writer, u *adminapi.Usage, per []string) error {
	words := []string{"day", "user", "key", "model"}
	head := ""
	for _, w := range words {
		if slices.Contains(per, w) {
			head += strings.ToUpper(w) + " "
		}
	}
	return cli.Table(out, head+"REQUESTS INPUT OUTPUT DOLLARS", nil, func(line func(...any)) {
		row := func(names map[string]string, s *adminapi.UsageSum) {
			var cells []any
			for _, w := range words {
				if slices.Contains(per, w) {
					cells = append(cells, names[w])
				}
			}
			line(append(cells, s.Requests, s.InputTokens, s.OutputTokens, cli.Amount(s.Amount))...)
		}
		for i := range u.Data {
			r := &u.Data[i]
			row(map[string]string{"day": r.Day, "user": r.User, "key": r.Key, "model": r.Model}, &r.UsageSum)
		}
		total := map[string]string{}
		if len(per) > 0 {
			total[words[slices.IndexFunc(words, func(w string) bool { return slices.Contains(per, w) })]] = "in all"
		}
		row(total, &u.Total)
	})
}

// receiptsCommand returns "stagedoor receipts", which shows single charges with the prices behind them.
func (a app) receiptsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "receipts", Short: "Show receipts: what requests cost, and why", Args: cli.NoArgs,
		Long: `Show what requests cost, and why: the model, what was used, the prices and how
the request ended.`,
		RunE: cli.Help,
	}
	o := datadir.AddFlags(c, a.App)
	c.AddCommand(a.receiptsShow(o), a.receiptsList(o))
	return c
}

// receiptsShow returns the command that prints the receipts of one request. It prints JSON only, because a receipt
// has prices and counts that no table of a terminal holds.
func (a app) receiptsShow(o *datadir.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "show REQUEST-ID", Short: "Print the receipts of a request id as JSON",
		Args: cli.ExactArgs(1, "a request id, as replies have it in X-Request-Id"),
		RunE: func(c *cobra.Command, args []string) error {
			return callAndPrint(c, a, o, true, apiCall[adminapi.List[adminapi.Receipt]]{method: "GET",
				path: "/receipts/", find: asTyped, item: args[0]})
		},
	}
}

// receiptsList returns the command that lists receipts, newest first.
func (a app) receiptsList(o *datadir.Flags) *cobra.Command {
	return listCommand(a, o, listing[adminapi.Receipt]{
		short: "List receipts, newest first", path: "/receipts",
		head: "ENDED REQUEST USER KEY MODEL INPUT OUTPUT DOLLARS END",
		cells: func(r *adminapi.Receipt) []any {
			return []any{
				r.Ended.UTC().Format("2006-01-02T15:04:05Z"), r.Request, r.Account, r.Key, r.Model, r.Usage.Input,
				r.Usage.Output, cli.Amount(r.Charged), r.Reason,
			}
		},
		filters: []filter{
			{"user", "only rows of this user", nil},
			{"key", "only those of this key, " + byKey, nil},
			{"from", "only from this day or time on", nil},
			{"to", "only before this day or time", nil},
		},
	})
}
