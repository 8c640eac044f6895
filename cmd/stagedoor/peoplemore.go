package main

import (
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"stagedoor/http/adminapi"
)

func (a *app) usersShow(o *overrides) *cobra.Command {
	return a.aboutUser(o, &cobra.Command{Use: "show NAME", Short: "Show a user and what the account has"}, "GET", "")
}

func (a *app) usersSignOut(o *overrides) *cobra.Command {
	return a.aboutUser(o, &cobra.Command{Use: "sign-out NAME", Short: "End all sessions of a user"}, "DELETE", "/sessions")
}

// aboutUser is a command about one user, who is found by name.
func (a *app) aboutUser(o *overrides, c *cobra.Command, method, path string) *cobra.Command {
	var asJSON bool
	c.Args = oneName("the name of one user")
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
				return printJSON(a.out, u)
			}
			status := map[int]string{1: "active", 2: "disabled"}[u.Status]
			_, err = fmt.Fprintf(a.out, "id         %d\nname       %s\nemail      %s\nstatus     %s\navailable  %s\nspent      %s\nheld       %s\n",
				u.ID, u.Username, u.Email, status, inDollars(u.Balance.Available), inDollars(u.Balance.Spent), inDollars(u.Balance.Held))
			return err
		})
	}
	jsonFlag(c, &asJSON)
	return c
}

func (a *app) appsList(o *overrides) *cobra.Command {
	var p paging
	var owner string
	c := &cobra.Command{
		Use: "list", Short: "List apps", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return ask(c, a, o, p.asJSON, asking[adminapi.List[adminapi.App]]{method: "GET", path: "/apps", query: p.query("owner", owner),
				show: func(out io.Writer, l *adminapi.List[adminapi.App]) error {
					return sheet(out, "ID NAME OWNER CLIENT-ID REDIRECT-URI CREATED DISABLED", l.Next, func(line func(...any)) {
						for _, m := range l.Data {
							line(m.ID, m.Name, m.Owner, m.ClientID, m.RedirectURI, day(&m.Created), day(m.Disabled))
						}
					})
				}})
		},
	}
	p.flags(c)
	c.Flags().StringVar(&owner, "owner", "", "only those of this user")
	return c
}

func (a *app) appsDelete(o *overrides) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "delete ID", Short: "Refuse an app and all its tokens from now on", Args: exactly(1, "the id of an app, as apps list shows it"),
		RunE: func(c *cobra.Command, args []string) error {
			return ask(c, a, o, asJSON, asking[adminapi.App]{method: "DELETE", path: "/apps/" + url.PathEscape(args[0]),
				show: func(out io.Writer, m *adminapi.App) error {
					_, err := fmt.Fprintf(out, "disabled app %d (%s)\n", m.ID, printable(m.Name))
					return err
				}})
		},
	}
	jsonFlag(c, &asJSON)
	return c
}

func (a *app) appsRotate(o *overrides) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "rotate-secret ID", Short: "Give an app a new secret; it is shown once", Args: exactly(1, "the id of an app, as apps list shows it"),
		RunE: func(c *cobra.Command, args []string) error {
			return ask(c, a, o, asJSON, asking[adminapi.AppSecret]{method: "POST", path: "/apps/" + url.PathEscape(args[0]) + "/secret", in: adminapi.Empty{},
				show: func(out io.Writer, m *adminapi.AppSecret) error {
					before := "has ended"
					if m.Previous != nil {
						before = "works until " + m.Previous.UTC().Format("2006-01-02 15:04 UTC")
					}
					_, err := fmt.Fprintf(out, "client_id      %s\nclient_secret  %s\n\nThe secret of %s is not shown again; the one before %s.\n",
						m.ClientID, m.Secret, printable(m.Name), before)
					return err
				}})
		},
	}
	jsonFlag(c, &asJSON)
	return c
}
