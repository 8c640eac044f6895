package admincli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/adminapi"
)

// creditsCommand returns "stagedoor credits", which moves money into and out of accounts and shows balances.
func (a app) creditsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "credits", Short: "Add money to accounts, and show balances", Args: cli.NoArgs,
		Long: `Add money to accounts of users, take it out, and show balances. Amounts are dollars
with at most six decimals. Changes take effect at once in a gateway that runs on the
data directory. Without one they change the directory itself.`,
		RunE: cli.Help,
	}
	o := datadir.AddFlags(c, a.App)
	c.AddCommand(a.creditsAdd(o), a.creditsTake(o), a.creditsShow(o), a.creditsList(o))
	return c
}

// creditsAdd returns the command that books a payment to an account.
func (a app) creditsAdd(o *datadir.Flags) *cobra.Command {
	return a.payment(o, 1, &cobra.Command{
		Use: "add USER DOLLARS", Short: "Add money to a user's account",
		Args: cli.ExactArgs(2, "a user's name and an amount of dollars"),
		Example: `  stagedoor credits add anna 12.50
  stagedoor credits add anna 100 --reason 'invoice 2026-17' --id inv-2026-17`,
	})
}

// creditsTake returns the command that takes money out of an account. The API refuses more than what is available, so
// that no request in flight loses the money that it holds.
func (a app) creditsTake(o *datadir.Flags) *cobra.Command {
	return a.payment(o, -1, &cobra.Command{
		Use: "take USER DOLLARS", Short: "Take available money out of a user's account",
		Args:    cli.ExactArgs(2, "a user's name and an amount of dollars"),
		Example: `  stagedoor credits take anna 12.50 --reason 'booked twice'`,
	})
}

// payment completes the commands that add and take. sign is 1 or -1. Both take a positive amount, so that a forgotten
// or doubled minus sign cannot turn one command into the other. With --id, a repeated call is booked once.
func (a app) payment(o *datadir.Flags, sign int64, c *cobra.Command) *cobra.Command {
	var in adminapi.Payment
	var asJSON bool
	c.RunE = func(c *cobra.Command, args []string) error {
		n, err := cli.ParseDollars(args[1])
		if err != nil {
			return err
		}
		if n <= 0 {
			return fmt.Errorf("%w: give an amount above 0", cli.ErrUsage)
		}
		in.Amount = sign * n
		return callAndPrint(c, a, o, asJSON, apiCall[adminapi.Paid]{method: "POST", path: "/accounts/", find: asTyped,
			item: args[0], suffix: "/credits", in: in, show: func(out io.Writer, p *adminapi.Paid) error {
				note := ""
				if p.Repeated {
					note = " (this payment had been made before)"
				}
				_, err := fmt.Fprintf(out, "%s has $%s to spend%s\n", p.Account.Account, cli.Dollars(p.Available),
					note)
				return err
			}})
	}
	c.Flags().StringVar(&in.Reason, "reason", "", "reason, recorded in the ledger")
	c.Flags().StringVar(&in.ID, "id", "", "idempotency key of your own: a payment with the same id is not made twice")
	jsonFlag(c, &asJSON)
	return c
}

// creditsShow returns the command that prints the balance of one account.
func (a app) creditsShow(o *datadir.Flags) *cobra.Command {
	return itemCommand(a, o, itemAction[adminapi.Account]{
		use: "show USER", short: "Show the balance, spending and holds of an account", what: "a user's name",
		method: "GET", path: "/accounts/", find: asTyped,
		show: func(out io.Writer, m *adminapi.Account) error {
			_, err := fmt.Fprintf(out, "available  %s\nspent      %s\nheld       %s\ncredits    %s\n",
				cli.Dollars(m.Available), cli.Dollars(m.Spent), cli.Dollars(m.Held), cli.Dollars(m.Credits))
			return err
		},
	})
}

// creditsList returns the command that lists accounts. An account is listed once money has moved on it.
func (a app) creditsList(o *datadir.Flags) *cobra.Command {
	return listCommand(a, o, listing[adminapi.Account]{
		short: "List accounts with any movement of money", path: "/accounts",
		head: "ACCOUNT AVAILABLE SPENT HELD CREDITS",
		cells: func(m *adminapi.Account) []any {
			return []any{
				m.Account, cli.Amount(m.Available), cli.Amount(m.Spent), cli.Amount(m.Held), cli.Amount(m.Credits),
			}
		},
	})
}
