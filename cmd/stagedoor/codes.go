package main

import (
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"stagedoor/http/adminapi"
)

func (a *app) codesCommand() *cobra.Command {
	var o overrides
	c := &cobra.Command{
		Use: "codes", Short: "Mint, list and cancel redeem codes", Args: noArgs,
		Long: `Mint, list and cancel redeem codes: money for whoever types the code on the
top-up page, once.`,
		RunE: help,
	}
	dataFlags(c, &o)
	c.AddCommand(a.codesMint(&o), a.codesList(&o), a.codesCancel(&o))
	return c
}

func (a *app) codesMint(o *overrides) *cobra.Command {
	var in adminapi.NewCodes
	var lasts time.Duration
	var asJSON bool
	c := &cobra.Command{
		Use: "mint DOLLARS", Short: "Mint redeem codes; they are shown once", Args: exactly(1, "an amount of dollars"),
		Example: `  stagedoor codes mint 25
  stagedoor codes mint 5 --count 100 --expires-in 2160h`,
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if in.Amount, err = dollarArg(args[0]); err != nil {
				return err
			}
			if lasts < 0 {
				return fmt.Errorf("%w: --expires-in must not be negative", errUsage)
			}
			if lasts > 0 {
				at := time.Now().Add(lasts)
				in.Expires = &at
			}
			return ask(c, a, o, asJSON, asking[adminapi.MintedCodes]{method: "POST", path: "/redeem-codes", in: in,
				show: func(out io.Writer, m *adminapi.MintedCodes) error {
					for _, code := range m.Data {
						if _, err := fmt.Fprintln(out, code.Secret); err != nil {
							return err
						}
					}
					_, err := fmt.Fprintf(out, "\n%s of $%s. They are not shown again.\n", counted(len(m.Data), "code"), inDollars(in.Amount))
					return err
				}})
		},
	}
	c.Flags().IntVar(&in.Count, "count", 1, "how many, at most 1000")
	c.Flags().DurationVar(&lasts, "expires-in", 0, "how long they are valid (default for ever)")
	jsonFlag(c, &asJSON)
	return c
}

func (a *app) codesList(o *overrides) *cobra.Command {
	var p paging
	var is string
	c := &cobra.Command{
		Use: "list", Short: "List redeem codes by id and last characters", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return ask(c, a, o, p.asJSON, asking[adminapi.List[adminapi.Code]]{method: "GET", path: "/redeem-codes", query: p.query("state", is),
				show: func(out io.Writer, l *adminapi.List[adminapi.Code]) error {
					return sheet(out, "ID ENDS AMOUNT STATE CREATED EXPIRES USED-BY", l.Next, func(line func(...any)) {
						for _, m := range l.Data {
							line(m.ID, m.Hint, inDollars(m.Amount), m.State, day(&m.Created), day(m.Expires), m.UsedBy)
						}
					})
				}})
		},
	}
	p.flags(c)
	c.Flags().StringVar(&is, "state", "", "only those: open, used, expired or cancelled")
	complete(c, "state", "open", "used", "expired", "cancelled")
	return c
}

func (a *app) codesCancel(o *overrides) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "cancel ID", Short: "Cancel a code that nobody has used", Args: exactly(1, "the id of a code, as codes list shows it"),
		RunE: func(c *cobra.Command, args []string) error {
			return ask(c, a, o, asJSON, asking[adminapi.Code]{method: "DELETE", path: "/redeem-codes/" + url.PathEscape(args[0]),
				show: func(out io.Writer, m *adminapi.Code) error {
					_, err := fmt.Fprintf(out, "cancelled %s ($%s)\n", m.ID, inDollars(m.Amount))
					return err
				}})
		},
	}
	jsonFlag(c, &asJSON)
	return c
}
