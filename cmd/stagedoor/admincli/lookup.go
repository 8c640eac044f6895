package admincli

import (
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stagedoor/actors/tokens"
	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/adminapi"
)

// aUser describes the argument of commands for one user.
const aUser = "the name of one user"

// usersShow returns the command that prints one user with balance, group and ceiling.
func (a app) usersShow(o *datadir.Flags) *cobra.Command {
	return itemCommand(a, o, itemAction[adminapi.User]{
		use: "show NAME", short: "Show a user and the balance of the account", what: aUser,
		method: "GET", path: "/users/", find: userID, show: showUser,
	})
}

// usersSignOut returns the command that ends the sessions of a user in all browsers. Keys and tokens stay.
func (a app) usersSignOut(o *datadir.Flags) *cobra.Command {
	return itemCommand(a, o, itemAction[adminapi.User]{
		use: "sign-out NAME", short: "End all sessions of a user", what: aUser,
		method: "DELETE", path: "/users/", suffix: "/sessions", find: userID, show: showUser,
	})
}

// usersLink returns the command that makes a link for a user who has lost the password. The operator does not learn
// the new password.
func (a app) usersLink(o *datadir.Flags) *cobra.Command {
	c := itemCommand(a, o, itemAction[adminapi.Link]{
		use: "link NAME", short: "Make a link with which a user chooses a password, once and within a day",
		what: aUser, method: "POST", path: "/users/", suffix: "/link", find: userID, in: adminapi.Empty{},
		show: func(_ io.Writer, link *adminapi.Link) error {
			return a.ShowOnce(link.URL, "With this link the user chooses a password. It works once, until %s.",
				link.Expires.Local().Format(untilFormat))
		},
	})
	c.Long = `Make a link for a user of a gateway that runs. Its holder chooses a new password
for the user and is signed in. It works once, within 24 hours, and ends with any change
of the password and with the next link. Give it to the user over a channel that you trust.`
	return c
}

// usersDelete returns the command that erases a user. Requests, responses and video jobs that are at work are erased
// only after they have ended. The reply counts them, and the command may be repeated.
func (a app) usersDelete(o *datadir.Flags) *cobra.Command {
	var yes bool
	c := itemCommand(a, o, itemAction[adminapi.ErasedUser]{
		use: "delete NAME --yes", short: "Erase what is stored of a user, except what the ledger needs", what: aUser,
		method: "POST", path: "/users/", suffix: "/erase", find: userID, in: adminapi.Empty{},
		show: func(out io.Writer, u *adminapi.ErasedUser) error {
			text := fmt.Sprintf("erased user %s (%d)\n", u.Username, u.ID)
			if u.Remaining > 0 {
				text += fmt.Sprintf("still at work: %d; run this again when they have ended\n", u.Remaining)
			}
			_, err := io.WriteString(out, text)
			return err
		},
	})
	c.Long = `Erase what is stored of a user, for good: e-mail address, password, sessions, tokens,
consents, stored responses, conversations and the prompts of video jobs. The user's keys
are revoked and the apps disabled. The name stays, with the entries of the ledger, the
receipts and the usage, and no other user can get it. A gateway that runs removes the
user's pictures and uploads as well, and deletes responses and videos at their providers.
Without one, pictures go within an hour and uploads within a day of the next start, and
the gateway begins to delete at the providers then.`
	mustConfirm(c, &yes, "users delete")
	return c
}

// showUser prints a user as lines of names and values.
func showUser(out io.Writer, u *adminapi.User) error {
	group := "none"
	if u.Group != nil {
		group = cli.Printable(u.Group.Name)
	}
	_, err := fmt.Fprintf(out, "id           %d\nname         %s\nemail        %s\nstatus       %s\n"+
		"available    %s\nheld         %s\ngroup        %s\n%s",
		u.ID, u.Username, u.Email, statusText(u), cli.Dollars(u.Balance.Available), cli.Dollars(u.Balance.Held),
		group, ceilingText(&u.Ceiling, &u.Spent))
	return err
}

// appsList returns the command that lists OAuth apps.
func (a app) appsList(o *datadir.Flags) *cobra.Command {
	return listCommand(a, o, listing[adminapi.App]{
		short: "List apps", path: "/apps",
		head: "ID NAME OWNER CLIENT-ID REDIRECT-URI CREATED DISABLED",
		cells: func(m *adminapi.App) []any {
			return []any{m.ID, m.Name, m.Owner, m.ClientID, m.RedirectURI, formatDay(&m.Created), formatDay(m.Disabled)}
		},
		filters: []filter{{"owner", "only rows of this user", nil}},
	})
}

// anApp describes the argument of commands for one app.
const anApp = "the id or name of an app, as apps list shows them"

// appsDelete returns the command that disables an app. It can be enabled again with apps update --disabled=false,
// because the apps of others may depend on it; apps erase removes it.
func (a app) appsDelete(o *datadir.Flags) *cobra.Command {
	return itemCommand(a, o, itemAction[adminapi.App]{
		use: "delete ID", short: "Disable an app and all its tokens", what: anApp,
		method: "DELETE", path: "/apps/", find: findApp,
		show: func(out io.Writer, m *adminapi.App) error {
			_, err := fmt.Fprintf(out, "disabled app %d (%s)\n", m.ID, cli.Printable(m.Name))
			return err
		},
	})
}

// appsErase returns the command that deletes an app with all that belongs to it.
func (a app) appsErase(o *datadir.Flags) *cobra.Command {
	var yes bool
	c := itemCommand(a, o, itemAction[adminapi.App]{
		use: "erase ID --yes", short: "Delete an app for good", what: anApp,
		method: "POST", path: "/apps/", suffix: "/erase", find: findApp, in: adminapi.Empty{},
		show: func(out io.Writer, m *adminapi.App) error {
			_, err := fmt.Fprintf(out, "erased app %d (%s), which %d users had allowed\n", m.ID, cli.Printable(m.Name),
				m.Users)
			return err
		},
	})
	c.Long = `Delete an app for good, at once with all its secrets, codes, tokens and grants and
the consents of its users.`
	mustConfirm(c, &yes, "apps erase")
	return c
}

// mustConfirm adds the flag --yes, without which the command is refused.
// A flag is used and not a question, because commands run in scripts, where a question would hang.
func mustConfirm(c *cobra.Command, yes *bool, name string) {
	c.Flags().BoolVar(yes, "yes", false, "confirm that this cannot be undone")
	c.PreRunE = func(*cobra.Command, []string) error {
		if !*yes {
			return fmt.Errorf("%w: %s cannot be undone: give --yes as well", cli.ErrUsage, name)
		}
		return nil
	}
}

const redirectHelp = "redirect address of the app, https or http on this machine; may be repeated"

// appsUpdate returns the command that changes an app. A flag that is not given changes nothing, and --logo none
// removes the logo.
func (a app) appsUpdate(o *datadir.Flags) *cobra.Command {
	var change adminapi.AppChange
	var name, description, logo string
	var uris []string
	var disabled, asJSON bool
	c := &cobra.Command{
		Use: "update ID", Short: "Change an app, at once for all requests", Args: cli.ExactArgs(1, anApp),
		Long: `Change an app. The change takes effect at once for all requests. Only the settings whose
flags are given change. The redirect addresses replace all earlier ones.`,
		Example: `  stagedoor apps update Weather --redirect-uri https://a.example/ --redirect-uri https://b.example/
  stagedoor apps update Weather --logo weather.png`,
		RunE: func(c *cobra.Command, args []string) error {
			given, enabled := c.Flags().Changed, !disabled
			if given("name") {
				change.Name = &name
			}
			if given("description") {
				change.Description = &description
			}
			if given("redirect-uri") {
				change.RedirectURIs = &uris
			}
			if given("disabled") {
				change.Enabled = &enabled
			}
			if given("logo") {
				change.Logo = adminapi.Null[string]()
				if logo != "none" {
					file, err := readLogo(logo)
					if err != nil {
						return err
					}
					change.Logo = adminapi.Some(base64.StdEncoding.EncodeToString(file))
				}
			}
			return callAndPrint(c, a, o, asJSON, apiCall[adminapi.App]{method: "PATCH", path: "/apps/", find: findApp,
				item: args[0], in: change, show: showApp})
		},
	}
	c.Flags().StringVar(&name, "name", "", "name of the app")
	c.Flags().StringVar(&description, "description", "", "description of the app for its users")
	c.Flags().StringArrayVar(&uris, "redirect-uri", nil, redirectHelp)
	c.Flags().StringVar(&logo, "logo", "", "PNG or JPEG file of at most 256 KB; none: no logo")
	c.Flags().BoolVar(&disabled, "disabled", false, "disable the app and its tokens; --disabled=false enables them")
	jsonFlag(c, &asJSON)
	return c
}

// readLogo returns the file, or its beginning if it is too long for a logo, which the API refuses then.
// One byte more than the limit is read, so that the API and not this command decides that a file is
// too large.
func readLogo(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, tokens.MaxLogo+1))
}

// showApp prints an app as lines of names and values, each of its addresses on a line of its own.
func showApp(out io.Writer, m *adminapi.App) error {
	state, logo := "enabled", "none"
	if m.Disabled != nil {
		state = "disabled since " + formatDay(m.Disabled)
	}
	if m.Logo {
		logo = "yes"
	}
	_, err := fmt.Fprintf(out, "id           %d\nname         %s\nowner        %s\nclient_id    %s\nstate        %s\n"+
		"addresses    %s\nlogo         %s\nallowed by   %d users\n", m.ID, cli.Printable(m.Name),
		cli.Printable(m.Owner), m.ClientID, state, strings.Join(m.RedirectURIs, "\n             "), logo, m.Users)
	return err
}

// appsEndSecret returns the command that ends the old secret of an app before its overlap has passed.
func (a app) appsEndSecret(o *datadir.Flags) *cobra.Command {
	return itemCommand(a, o, itemAction[adminapi.App]{
		use: "end-secret ID", short: "End the previous secret of an app now", what: anApp,
		method: "DELETE", path: "/apps/", suffix: "/secret/previous", find: findApp,
		show: func(out io.Writer, m *adminapi.App) error {
			_, err := fmt.Fprintf(out, "app %d (%s) has one secret\n", m.ID, cli.Printable(m.Name))
			return err
		},
	})
}

// appsRotate returns the command that replaces the secret of an app. The old one is accepted for the overlap, so that
// the servers of the app can be updated one after the other.
func (a app) appsRotate(o *datadir.Flags) *cobra.Command {
	overlap := cli.Duration(tokens.DefaultOverlap)
	var in adminapi.Rotation
	c := itemCommand(a, o, itemAction[adminapi.AppSecret]{
		use: "rotate-secret ID", short: "Give an app a new secret; it is shown once", what: anApp,
		method: "POST", path: "/apps/", find: findApp, suffix: "/secret", in: &in,
		show: func(out io.Writer, m *adminapi.AppSecret) error {
			before := "has ended"
			if m.Previous != nil {
				before = "works until " + m.Previous.UTC().Format("2006-01-02 15:04 UTC")
			}
			_, err := fmt.Fprintf(out,
				"client_id      %s\nclient_secret  %s\n\nThe secret of %s is not shown again; the one before %s.\n",
				m.ClientID, m.Secret, cli.Printable(m.Name), before)
			return err
		},
	})
	c.Flags().Var(&overlap, "overlap", "time for which the old secret stays valid, at most 30d; 0: end it now")
	// The flag is known only when the command runs, and the call was described before. It therefore holds a pointer.
	c.PreRun = func(*cobra.Command, []string) {
		in.Overlap = new(int64(time.Duration(overlap) / time.Second))
	}
	return c
}
