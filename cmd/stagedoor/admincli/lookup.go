package admincli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/adminapi"
)

func (a app) usersShow(o *datadir.Flags) *cobra.Command {
	return a.aboutUser(o, &cobra.Command{Use: "show NAME", Short: "Show a user and what the account has"}, "GET", "")
}

func (a app) usersSignOut(o *datadir.Flags) *cobra.Command {
	return a.aboutUser(
		o,
		&cobra.Command{Use: "sign-out NAME", Short: "End all sessions of a user"},
		"DELETE",
		"/sessions",
	)
}

func (a app) usersLink(o *datadir.Flags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "link NAME", Short: "Make a link with which a user chooses a password, once and within 15 minutes",
		Args: cli.ExactArgs(1, "the name of one user"),
		Long: `Make a link for a user of a gateway that runs. Its holder chooses a new password
for the user and is signed in. It works once, within 15 minutes, and ends with any change
of the password. Give it to the user over a channel that you trust.`,
		RunE: func(c *cobra.Command, args []string) error {
			return a.withAPI(c.Context(), o, func(api *adminapi.Client) error {
				id, err := userID(c.Context(), api, args[0])
				if err != nil {
					return err
				}
				var link adminapi.Link
				if err := api.Do(c.Context(), "POST", "/users/"+id+"/link", nil, adminapi.Empty{}, &link); err != nil {
					return err
				}
				if asJSON {
					return cli.PrintJSON(a.Out, link)
				}
				return a.ShowOnce(link.URL, "With this link %s chooses a password. It works once, until %s.", args[0],
					link.Expires.Local().Format("15:04"))
			})
		},
	}
	jsonFlag(c, &asJSON)
	return c
}

func (a app) usersDelete(o *datadir.Flags) *cobra.Command {
	var yes, asJSON bool
	c := &cobra.Command{
		Use: "delete NAME --yes", Short: "Erase what is stored of a user, except what the ledger needs",
		Args: cli.ExactArgs(1, "the name of one user"),
		Long: `Erase what is stored of a user, for good: e-mail address, password, sessions, tokens,
consents, stored responses, conversations and the prompts of video jobs. The user's keys
are revoked and the apps disabled. The name stays, with the entries of the ledger, the
receipts and the usage, and no other user can get it.`,
		RunE: func(c *cobra.Command, args []string) error {
			if !yes {
				return fmt.Errorf("%w: users delete cannot be undone: give --yes as well", cli.ErrUsage)
			}
			return a.withAPI(c.Context(), o, func(api *adminapi.Client) error {
				id, err := userID(c.Context(), api, args[0])
				if err != nil {
					return err
				}
				var u adminapi.ErasedUser
				if err := api.Do(c.Context(), "POST", "/users/"+id+"/erase", nil, adminapi.Empty{}, &u); err != nil {
					return err
				}
				if asJSON {
					return cli.PrintJSON(a.Out, u)
				}
				text := fmt.Sprintf("erased user %s (%d)\n", u.Username, u.ID)
				if u.Remaining > 0 {
					text += fmt.Sprintf("still at work: %d; run this again when they have ended\n", u.Remaining)
				}
				_, err = io.WriteString(a.Out, text)
				return err
			})
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "erase without a way back")
	jsonFlag(c, &asJSON)
	return c
}

// aboutUser completes a command that calls the admin API for the user that its argument names, and prints the user.
func (a app) aboutUser(o *datadir.Flags, c *cobra.Command, method, path string) *cobra.Command {
	var asJSON bool
	c.Args = cli.ExactArgs(1, "the name of one user")
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.withAPI(c.Context(), o, func(api *adminapi.Client) error {
			id, err := userID(c.Context(), api, args[0])
			if err != nil {
				return err
			}
			var u adminapi.User
			if err := api.Do(c.Context(), method, "/users/"+id+path, nil, nil, &u); err != nil {
				return err
			}
			if asJSON {
				return cli.PrintJSON(a.Out, u)
			}
			group := "none"
			if u.Group != nil {
				group = cli.Printable(u.Group.Name)
			}
			_, err = fmt.Fprintf(
				a.Out,
				"id           %d\nname         %s\nemail        %s\nstatus       %s\navailable    %s\n"+
					"held         %s\ngroup        %s\n%s",
				u.ID,
				u.Username,
				u.Email,
				statusText(&u),
				cli.Dollars(u.Balance.Available),
				cli.Dollars(u.Balance.Held),
				group,
				ceilingText(&u.Ceiling, &u.Spent),
			)
			return err
		})
	}
	jsonFlag(c, &asJSON)
	return c
}

func (a app) appsList(o *datadir.Flags) *cobra.Command {
	return listCommand(a, o, listing[adminapi.App]{
		short: "List apps", path: "/apps",
		head: "ID NAME OWNER CLIENT-ID REDIRECT-URI CREATED DISABLED",
		cells: func(m *adminapi.App) []any {
			return []any{m.ID, m.Name, m.Owner, m.ClientID, m.RedirectURI, formatDay(&m.Created), formatDay(m.Disabled)}
		},
		filters: []filter{{"owner", "only those of this user", nil}},
	})
}

// anApp describes the argument of commands for one app.
const anApp = "the id or name of an app, as apps list shows them"

func (a app) appsDelete(o *datadir.Flags) *cobra.Command {
	return itemCommand(a, o, itemAction[adminapi.App]{
		use: "delete ID", short: "Refuse an app and all its tokens from now on", what: anApp,
		method: "DELETE", path: "/apps/", find: findApp,
		show: func(out io.Writer, m *adminapi.App) error {
			_, err := fmt.Fprintf(out, "disabled app %d (%s)\n", m.ID, cli.Printable(m.Name))
			return err
		},
	})
}

func (a app) appsRotate(o *datadir.Flags) *cobra.Command {
	return itemCommand(a, o, itemAction[adminapi.AppSecret]{
		use: "rotate-secret ID", short: "Give an app a new secret; it is shown once", what: anApp,
		method: "POST", path: "/apps/", find: findApp, suffix: "/secret", in: adminapi.Empty{},
		show: func(out io.Writer, m *adminapi.AppSecret) error {
			before := "has ended"
			if m.Previous != nil {
				before = "works until " + m.Previous.UTC().Format("2006-01-02 15:04 UTC")
			}
			_, err := fmt.Fprintf(
				out,
				"client_id      %s\nclient_secret  %s\n\nThe secret of %s is not shown again; the one before %s.\n",
				m.ClientID,
				m.Secret,
				cli.Printable(m.Name),
				before,
			)
			return err
		},
	})
}
