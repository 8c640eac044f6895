package admincli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/adminapi"
)

// codesCommand returns "stagedoor codes", which mints, lists and cancels redeem codes.
func (a app) codesCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "codes", Short: "Mint, list and cancel redeem codes", Args: cli.NoArgs,
		Long: `Mint, list and cancel redeem codes. A code adds its amount to the account of the user
that enters it on the top-up page. It works once.`,
		RunE: cli.Help,
	}
	o := datadir.AddFlags(c, a.App)
	c.AddCommand(a.codesMint(o), a.codesList(o), a.codesCancel(o))
	return c
}

// codesMint returns the command that makes codes and prints their secrets, one on a line. The count and the
// explanation stand behind an empty line, so that a person can copy the codes as a block. The store keeps hashes of
// the codes.
func (a app) codesMint(o *datadir.Flags) *cobra.Command {
	var in adminapi.NewCodes
	var lasts cli.Duration
	var asJSON bool
	c := &cobra.Command{
		Use: "mint DOLLARS", Short: "Mint redeem codes; they are shown once",
		Args: cli.ExactArgs(1, "an amount of dollars"),
		Example: `  stagedoor codes mint 25
  stagedoor codes mint 5 --count 100 --expires-in 90d`,
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if in.Amount, err = cli.ParseDollars(args[0]); err != nil {
				return err
			}
			if lasts < 0 {
				return fmt.Errorf("%w: --expires-in must not be negative", cli.ErrUsage)
			}
			if lasts > 0 {
				in.Expires = new(time.Now().Add(time.Duration(lasts)))
			}
			return callAndPrint(c, a, o, asJSON, apiCall[adminapi.MintedCodes]{method: "POST", path: "/redeem-codes",
				in: in, show: func(out io.Writer, m *adminapi.MintedCodes) error {
					for _, code := range m.Data {
						if _, err := fmt.Fprintln(out, code.Secret); err != nil {
							return err
						}
					}
					_, err := fmt.Fprintf(out, "\n%s of $%s. They are not shown again.\n",
						cli.Count(len(m.Data), "code"), cli.Dollars(in.Amount))
					return err
				}})
		},
	}
	c.Flags().IntVar(&in.Count, "count", 1, "number of codes, at most 1000")
	c.Flags().Var(&lasts, "expires-in", "time until the codes expire, such as 90d (default never)")
	jsonFlag(c, &asJSON)
	return c
}

// codesList returns the command that lists codes. A list shows only the last characters of a code, because a whole
// one is money for its reader.
func (a app) codesList(o *datadir.Flags) *cobra.Command {
	return listCommand(a, o, listing[adminapi.Code]{
		short: "List redeem codes by id and last characters", path: "/redeem-codes",
		head: "ID ENDS AMOUNT STATE CREATED EXPIRES USED-BY",
		cells: func(m *adminapi.Code) []any {
			return []any{
				m.ID, m.Hint, cli.Amount(m.Amount), m.State, formatDay(&m.Created), formatDay(m.Expires), m.UsedBy,
			}
		},
		filters: []filter{
			{"state", "only codes in this state",
				[]string{"open", "used", "expired", "cancelled"}},
		},
	})
}

// codesCancel returns the command that ends a code which was not used yet. It takes the last characters of the code
// as well as its id, because those are what the holder of a code can read out.
func (a app) codesCancel(o *datadir.Flags) *cobra.Command {
	return itemCommand(a, o, itemAction[adminapi.Code]{
		use: "cancel ID", short: "Cancel a code that has not been used",
		what:   "the id or the last characters of a code, as codes list shows them",
		method: "DELETE", path: "/redeem-codes/", find: findCode,
		show: func(out io.Writer, m *adminapi.Code) error {
			_, err := fmt.Fprintf(out, "cancelled %s ($%s)\n", m.ID, cli.Dollars(m.Amount))
			return err
		},
	})
}
