package admincli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/adminapi"
	"stagedoor/providers/shapes/registry"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
)

// keysShow returns the command that prints one key with its limits, its budget and its spending.
func (a app) keysShow(o *datadir.Flags) *cobra.Command {
	c := itemCommand(a, o, itemAction[adminapi.Key]{
		use: "show KEY", short: "Show a key, its budget and what it has spent", what: aKey,
		method: "GET", path: "/keys/", find: findKey, show: printKey,
	})
	c.ValidArgsFunction = a.completeKeys(o)
	return c
}

// printKey prints a key as lines of names and values. A disabled key says who disabled it, because its owner may
// enable it again only after disabling it.
func printKey(out io.Writer, k *adminapi.Key) error {
	from := "anywhere"
	if len(k.AllowIPs) > 0 {
		from = strings.Join(k.AllowIPs, ",")
	}
	status := k.State
	if k.DisabledBy != nil && status == "disabled" {
		status += " by " + map[string]string{identity.PartyOwner.String(): "its owner",
			identity.PartyLead.String():     "a lead of the group",
			identity.PartyOperator.String(): "the operator"}[*k.DisabledBy]
	}
	expires := formatDay(k.Expires)
	expires = cmp.Or(expires, "never")
	leaves := "as the model says"
	if k.OnDisconnect != nil {
		leaves = *k.OnDisconnect
	}
	recorded := "no"
	if k.RecordedUntil != nil {
		recorded = "until " + k.RecordedUntil.UTC().Format(time.RFC3339)
	}
	_, err := fmt.Fprintf(out, `id           %s
key          %s...
name         %s
user         %s
state        %s
scopes       %s
models       %s
limits       %d rpm, %d tpm, %d at a time (0: none)
budget       %s
spent        %s; today %s, this month %s
allowed from %s
disconnected %s
expires      %s
recorded     %s
`,
		k.ID, k.Prefix, cli.Printable(k.Name), cli.Printable(k.User), status, setText(k.Scopes), setText(k.Models),
		k.Limits.RPM, k.Limits.TPM, k.Limits.Concurrency, budgetText(k.Budget),
		cli.Dollars(k.Spent.Total), cli.Dollars(k.Spent.Day), cli.Dollars(k.Spent.Month), from, leaves, expires,
		recorded)
	return err
}

// budgetFlags are the flags of a budget.
type budgetFlags struct {
	amount cli.Amount
	window string
}

// flags adds the flags of a budget to a command.
func (b *budgetFlags) flags(c *cobra.Command) {
	c.Flags().Var(&b.amount, "budget", "largest amount that may be spent; 0: no budget")
	c.Flags().StringVar(&b.window, "budget-window", "total", "period of the budget: total, day or month (UTC)")
	cli.CompleteWords(c, "budget-window", "total", "day", "month")
}

// check returns ErrUsage for a budget or a window that no budget can have.
func (b *budgetFlags) check() error {
	if b.amount < 0 || int64(b.amount) > budget.MaxCredits {
		return fmt.Errorf("%w: --budget must be between 0 and %s", cli.ErrUsage, cli.Dollars(budget.MaxCredits))
	}
	if !budget.Window(b.window).Known() {
		return fmt.Errorf("%w: --budget-window %q is not known, use total, day or month", cli.ErrUsage, b.window)
	}
	return nil
}

// change returns the change of a budget for the flags that were given. A budget of 0 removes the budget, which is
// null in the API.
// The three cases of a flag are those of the API: not given (the field is absent), 0 (null removes
// the budget) and an amount.
func (b *budgetFlags) change(given func(string) bool) (change adminapi.Optional[adminapi.BudgetChange], err error) {
	if err := b.check(); err != nil || !given("budget") && !given("budget-window") {
		return change, err
	}
	var fields adminapi.BudgetChange
	if given("budget") {
		if b.amount == 0 {
			return adminapi.Null[adminapi.BudgetChange](), nil
		}
		fields.Amount = (*int64)(&b.amount)
	}
	if given("budget-window") {
		fields.Window = &b.window
	}
	return adminapi.Some(fields), nil
}

// keysUpdate returns the command that changes a key. Only flags that were given are sent, so two operators who change
// different fields do not undo each other's change.
func (a app) keysUpdate(o *datadir.Flags) *cobra.Command {
	var w keyFlags
	var b budgetFlags
	var disabled, asJSON bool
	c := &cobra.Command{
		Use: "update KEY", Short: "Change a key, at once for all requests",
		Args: cli.ExactArgs(1, aKey),
		Long: `Change a key. The change takes effect at once for all requests, also in a running
gateway. Only the settings whose flags are given change.`,
		Example: `  stagedoor keys update laptop --budget 20 --budget-window month
  stagedoor keys update key_019a... --scope all --model '*' --expires-in 0
  stagedoor keys update key_019a... --disabled
  stagedoor keys update laptop --record-for 24h`,
		ValidArgsFunction: a.completeKeys(o),
		RunE: func(c *cobra.Command, args []string) error {
			change, err := w.change(c.Flags().Changed, time.Now())
			if err == nil {
				change.Budget, err = b.change(c.Flags().Changed)
			}
			if err != nil {
				return err
			}
			if c.Flags().Changed("disabled") {
				change.Enabled = new(!disabled)
			}
			return callAndPrint(c, a, o, asJSON, apiCall[adminapi.Key]{method: "PATCH", path: "/keys/", find: findKey,
				item: args[0], in: change, show: printKey})
		},
	}
	f := c.Flags()
	f.StringVar(&w.name, "name", "", "name in lists and logs")
	f.StringSliceVar(&w.scopes, "scope", nil,
		"what it may do, one or more of all, "+strings.Join(registry.Scopes(), ", "))
	f.BoolVar(&w.nothing, "no-scopes", false, "leave the key without any scope")
	f.StringSliceVar(&w.models, "model", nil, "names or patterns of the models that the key may use; '*': all")
	f.StringSliceVar(&w.allow, "allow-ip", nil,
		"addresses or networks from which the key is accepted; any: all addresses")
	f.Int64Var(&w.rpm, "rpm", 0, "requests per minute; 0: no limit")
	f.Int64Var(&w.tpm, "tpm", 0, "tokens per minute; 0: no limit")
	f.Int64Var(&w.concurrency, "concurrency", 0, "concurrent requests; 0: no limit")
	f.Var(&w.expires, "expires-in", "time until the key expires, from now, such as 30d; 0: never")
	f.StringVar(&w.onDisconnect, "on-disconnect", "", disconnectHelp)
	f.Var(&w.recordFor, "record-for", "record requests and replies for their pages for this time from now,\n"+
		"at most 7d; 0: end that")
	f.BoolVar(&disabled, "disabled", false, "disable the key; --disabled=false enables it again")
	b.flags(c)
	jsonFlag(c, &asJSON)
	cli.CompleteWords(c, "scope", append([]string{"all"}, registry.Scopes()...)...)
	return c
}

// change returns the change of a key for the flags that were given.
// given reports whether a flag was on the command line. A flag with its default value and a flag
// that was not given are different, because --rpm 0 removes a limit.
func (k *keyFlags) change(given func(string) bool, now time.Time) (adminapi.KeyChange, error) {
	var change adminapi.KeyChange
	if err := k.rejectEmptySets(); err != nil {
		return change, err
	}
	if k.nothing && len(k.scopes) > 0 {
		return change, fmt.Errorf("%w: --scope and --no-scopes exclude each other", cli.ErrUsage)
	}
	if min(k.expires, k.recordFor) < 0 {
		return change, fmt.Errorf("%w: --expires-in and --record-for must not be negative", cli.ErrUsage)
	}
	if given("name") {
		change.Name = &k.name
	}
	switch {
	case k.nothing:
		change.Scopes = adminapi.Some([]string{})
	case given("scope"):
		change.Scopes = setOrNull(k.scopes, "all")
	}
	if given("model") {
		change.Models = setOrNull(k.models, "*")
	}
	if given("allow-ip") {
		change.AllowIPs = setOrNull(k.allow, "any")
	}
	var limits adminapi.LimitsChange
	for _, limit := range []struct {
		flag  string
		value int64
		to    *adminapi.Optional[int64]
	}{{"rpm", k.rpm, &limits.RPM}, {"tpm", k.tpm, &limits.TPM}, {"concurrency", k.concurrency, &limits.Concurrency}} {
		if given(limit.flag) {
			*limit.to = adminapi.Some(limit.value)
			change.Limits = adminapi.Some(limits)
		}
	}
	if given("on-disconnect") {
		change.OnDisconnect = adminapi.Some(k.onDisconnect)
		if k.onDisconnect == "model" {
			change.OnDisconnect = adminapi.Null[string]()
		}
	}
	if given("expires-in") {
		change.Expires = adminapi.Null[time.Time]()
		if k.expires > 0 {
			change.Expires = adminapi.Some(now.Add(time.Duration(k.expires)))
		}
	}
	if given("record-for") {
		change.RecordedUntil = adminapi.Null[time.Time]()
		if k.recordFor > 0 {
			change.RecordedUntil = adminapi.Some(now.Add(time.Duration(k.recordFor)))
		}
	}
	return change, nil
}

// setOrNull returns set, or null if set contains the word that stands for everything.
func setOrNull(set []string, everything string) adminapi.Optional[[]string] {
	if slices.Contains(set, everything) {
		return adminapi.Null[[]string]()
	}
	return adminapi.Some(set)
}
