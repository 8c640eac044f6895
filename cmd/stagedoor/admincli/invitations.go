package admincli

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/adminapi"
)

// untilFormat is that of the end of a link.
const untilFormat = "2 Jan 15:04"

// usersInvite returns the command that makes a link with which a person creates an account. The link is a secret that
// is shown once. It needs a gateway that runs, because only that knows the address of its pages.
func (a app) usersInvite(o *datadir.Flags) *cobra.Command {
	var in adminapi.NewInvitation
	var group string
	var asJSON bool
	c := &cobra.Command{
		Use: "invite NAME|EMAIL", Short: "Create a link for a new user, valid once within a week",
		Args: cli.ExactArgs(1, "a name or an e-mail address"),
		Example: `  stagedoor users invite anna@example.com --group staff
  stagedoor users invite bob --admin`,
		Long: `Create a link for a person who has no account yet. The gateway must be running. The person
chooses a name and a password and is signed in. The link works once, within 7 days. Send it over
a channel that you trust. No mail server is needed.`,
		RunE: func(c *cobra.Command, args []string) error {
			// An argument with an @ is an e-mail address, and the person chooses a name later.
			if in.Username = args[0]; strings.Contains(args[0], "@") {
				in.Username, in.Email = "", args[0]
			}
			return a.withAPI(c.Context(), o, func(api *adminapi.Client) error {
				if group != "" {
					id, err := findGroup(c.Context(), api, group)
					if err != nil {
						return err
					}
					if in.Group, err = strconv.ParseInt(id, 10, 64); err != nil {
						return err
					}
				}
				var made adminapi.InvitationLink
				if err := api.Do(c.Context(), "POST", "/invitations", nil, in, &made); err != nil {
					return err
				}
				if asJSON {
					return cli.PrintJSON(a.Out, made)
				}
				return a.ShowOnce(made.URL, "With this link %s makes an account. It works once, until %s.",
					cli.Printable(args[0]), made.Expires.Local().Format(untilFormat))
			})
		},
	}
	c.Flags().StringVar(&group, "group", "", "group of the new user")
	c.Flags().BoolVar(&in.Admin, "admin", false, "let the user administer the gateway in a browser")
	jsonFlag(c, &asJSON)
	return c
}

// usersInvitations returns the command that lists the invitations which were neither used nor withdrawn.
func (a app) usersInvitations(o *datadir.Flags) *cobra.Command {
	c := listCommand(a, o, listing[adminapi.Invitation]{
		short: "List open invitations", path: "/invitations", head: "ID NAME EMAIL ROLE BY ENDS",
		cells: func(i *adminapi.Invitation) []any {
			role := "user"
			if i.Admin {
				role = "admin"
			}
			return []any{i.ID, i.Username, i.Email, role, i.By, i.Expires.Local().Format(untilFormat)}
		},
	})
	// It stands beside "users list", so it cannot be called list as well.
	c.Use = "invitations"
	return c
}

// usersWithdraw returns the command that ends an invitation, which is named by its id or by the person it is for.
func (a app) usersWithdraw(o *datadir.Flags) *cobra.Command {
	return itemCommand(a, o, itemAction[adminapi.Invitation]{
		use: "withdraw ID", short: "End an invitation", what: "the id of one invitation",
		method: "DELETE", path: "/invitations/",
		find: finderOf("/invitations", "invitation", func(i *adminapi.Invitation) candidate {
			return candidate{id: i.ID, name: cmp.Or(i.Username, i.Email)}
		}),
		show: func(out io.Writer, i *adminapi.Invitation) error {
			_, err := fmt.Fprintf(out, "withdrew the invitation for %s\n", cli.Printable(cmp.Or(i.Username, i.Email)))
			return err
		},
	})
}
