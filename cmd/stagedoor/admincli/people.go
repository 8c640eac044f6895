package admincli

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stagedoor/actors/tokens"
	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/adminapi"
)

// usersCommand returns "stagedoor users", which administers the people who sign in.
func (a app) usersCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "users", Short: "Create, change and list users", Args: cli.NoArgs,
		Long: `Create, change and list users. Users sign in, own keys and apps, and allow apps to read
their account.`,
		RunE: cli.Help,
	}
	o := datadir.AddFlags(c, a.App)
	c.AddCommand(a.usersCreate(o), a.usersUpdate(o), a.usersList(o), a.usersShow(o), a.usersSignOut(o),
		a.usersInvite(o), a.usersInvitations(o), a.usersWithdraw(o), a.usersLink(o), a.usersDelete(o),
		a.usersDeveloperToken(o))
	return c
}

// usersCreate returns the command that makes a user. A password is never taken from an argument, because other users
// of the machine can read arguments. The first user may be made before the first start, so the data directory is
// created.
func (a app) usersCreate(o *datadir.Flags) *cobra.Command {
	var email string
	var fromInput, asJSON, administers bool
	c := &cobra.Command{
		Use: "create NAME", Short: "Create a user; the password is generated and shown once",
		Args: cli.ExactArgs(1, aUser),
		Example: `  stagedoor users create anna --email anna@example.com
  stagedoor users create bob --password-stdin < password.txt`,
		RunE: func(c *cobra.Command, args []string) error {
			in := adminapi.NewUser{Username: args[0], Email: email, Admin: administers}
			if fromInput {
				password, err := firstLine(c.InOrStdin())
				if err != nil {
					return err
				}
				in.Password = &password
			}
			return a.withNewAPI(c.Context(), o, func(api *adminapi.Client) error {
				var u adminapi.CreatedUser
				if err := api.Do(c.Context(), "POST", "/users", nil, in, &u); err != nil {
					return err
				}
				switch {
				case asJSON:
					return cli.PrintJSON(a.Out, u)
				case u.Password != "":
					return a.ShowOnce(u.Password, "This is the password of %s (%d).", u.Username, u.ID)
				}
				_, err := fmt.Fprintf(a.Out, "created user %s (%d)\n", u.Username, u.ID)
				return err
			})
		},
	}
	c.Flags().StringVar(&email, "email", "", "e-mail address")
	c.Flags().BoolVar(&administers, "admin", false, "let the user administer the gateway in a browser")
	c.Flags().BoolVar(&fromInput, "password-stdin", false, "read the password from the first line of standard input")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// userFlags are the flags of users update. A flag that was not given leaves the setting as it is, so the zero
// values here say nothing by themselves.
type userFlags struct {
	email                         string
	administers, disabled         bool
	fromInput, reset, resetFactor bool
	ceiling                       ceilingFlags
}

// flags adds the flags to a command.
func (u *userFlags) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&u.email, "email", "", "e-mail address")
	f.BoolVar(&u.administers, "admin", false,
		"let the user administer the gateway in a browser; --admin=false takes that back")
	f.BoolVar(&u.disabled, "disabled", false, "disable the user; --disabled=false enables the user again")
	f.BoolVar(&u.reset, "reset-password", false, "generate a new password and show it once; all sessions end")
	f.BoolVar(&u.fromInput, "password-stdin", false,
		"read a new password from the first line of standard input; all sessions end")
	f.BoolVar(&u.resetFactor, "reset-second-factor", false,
		"remove the second factor, so that the password is enough to sign in")
	u.ceiling.flags(c)
}

// change returns the change of a user for the flags that were given. A call without any of them is ErrUsage, because it
// is more often a mistyped flag than an intention.
func (u *userFlags) change(c *cobra.Command) (change adminapi.UserChange, err error) {
	given := c.Flags().Changed
	if change.Ceiling, err = u.ceiling.change(given); err != nil {
		return change, err
	}
	if given("email") {
		change.Email = &u.email
	}
	if given("admin") {
		change.Admin = &u.administers
	}
	if given("disabled") {
		status := tokens.StatusActive
		if u.disabled {
			status = tokens.StatusDisabled
		}
		change.Status = &status
	}
	change.ResetSecondFactor = u.resetFactor
	if change.Password, err = newPassword(c.InOrStdin(), u.fromInput, u.reset); err != nil {
		return change, err
	}
	if change == (adminapi.UserChange{}) {
		err = fmt.Errorf("%w: say what to change: --admin, --disabled, --email, --reset-password, --password-stdin, "+
			"--reset-second-factor, --scope, --no-scopes, --model, --create-keys, --budget or --budget-window",
			cli.ErrUsage)
	}
	return change, err
}

// usersUpdate returns the command that changes a user. A flag that is not given changes nothing.
func (a app) usersUpdate(o *datadir.Flags) *cobra.Command {
	var f userFlags
	var asJSON bool
	c := &cobra.Command{
		Use: "update NAME", Short: "Change a user: role, status, e-mail address, password, ceiling",
		Args: cli.ExactArgs(1, aUser),
		Example: `  stagedoor users update anna --admin
  stagedoor users update bob --disabled
  stagedoor users update bob --scope chat --model 'gpt-*' --budget 20 --budget-window month --create-keys=false
  stagedoor users update bob --disabled=false --password-stdin < password.txt`,
		RunE: func(c *cobra.Command, args []string) error {
			change, err := f.change(c)
			if err != nil {
				return err
			}
			return a.withAPI(c.Context(), o, func(api *adminapi.Client) error {
				id, err := userID(c.Context(), api, args[0])
				if err != nil {
					return err
				}
				var u adminapi.User
				if err := api.Do(c.Context(), "PATCH", "/users/"+id, nil, change, &u); err != nil {
					return err
				}
				shown := adminapi.CreatedUser{User: u}
				if f.reset {
					// The API does not send passwords back. This process made the new one and shows it.
					shown.Password = *change.Password
				}
				if asJSON {
					return cli.PrintJSON(a.Out, shown)
				}
				if f.reset {
					return a.ShowOnce(shown.Password, "This is the new password of %s (%d).", u.Username, u.ID)
				}
				_, err = fmt.Fprintf(a.Out, "changed user %s (%d)\n", u.Username, u.ID)
				return err
			})
		},
	}
	f.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// newPassword returns the password that users update sets: the first line of in, or one that it makes up, or nil.
func newPassword(in io.Reader, fromInput, reset bool) (*string, error) {
	var password string
	var err error
	switch {
	case fromInput && reset:
		return nil, fmt.Errorf("%w: --reset-password and --password-stdin exclude each other", cli.ErrUsage)
	case fromInput:
		password, err = firstLine(in)
	case reset:
		password, err = tokens.NewPassword(rand.Reader)
	default:
		return nil, nil
	}
	return &password, err
}

// firstLine returns the first line of in without its end. A last line without an end is a line, too.
func firstLine(in io.Reader) (string, error) {
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// usersList returns the command that lists users.
func (a app) usersList(o *datadir.Flags) *cobra.Command {
	return listCommand(a, o, listing[adminapi.User]{
		short: "List users", path: "/users", head: "ID NAME EMAIL ROLE STATE CREATED",
		cells: func(u *adminapi.User) []any {
			role, created := "user", time.Unix(u.Created, 0)
			if u.Admin {
				role = "admin"
			}
			return []any{u.ID, u.Username, u.Email, role, statusText(u), formatDay(&created)}
		},
	})
}

// statusText returns the word for the status of a user.
func statusText(u *adminapi.User) string {
	if u.Erased != nil {
		return "erased"
	}
	return map[int]string{tokens.StatusActive: "active", tokens.StatusDisabled: "disabled"}[u.Status]
}

// usersDeveloperToken returns the command that makes a token with which a user's programs register apps. The
// token registers apps and can do nothing else.
func (a app) usersDeveloperToken(o *datadir.Flags) *cobra.Command {
	var in adminapi.NewDeveloperToken // a flag fills it after the call was described
	c := itemCommand(a, o, itemAction[adminapi.DeveloperToken]{
		use:   "developer-token NAME",
		short: "Create a token with which a user's programs register apps; it is shown once",
		what:  aUser, method: "POST", path: "/users/", suffix: "/developer-tokens", find: userID, in: &in,
		show: func(_ io.Writer, t *adminapi.DeveloperToken) error {
			return a.ShowOnce(t.Token, "This is the developer token %q of %s.", t.Name, t.User)
		},
	})
	c.Flags().StringVar(&in.Name, "name", "developer token", "name in lists")
	return c
}

// appsCommand returns "stagedoor apps", which administers OAuth apps.
func (a app) appsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "apps", Short: "Register, list and delete OAuth apps", Args: cli.NoArgs,
		Long: `Register, list and delete OAuth apps. An app is a third-party program that may read a
user's account if the user allows it.`,
		RunE: cli.Help,
	}
	o := datadir.AddFlags(c, a.App)
	c.AddCommand(a.appsCreate(o), a.appsList(o), a.appsUpdate(o), a.appsRotate(o), a.appsEndSecret(o),
		a.appsDelete(o), a.appsErase(o))
	return c
}

// appsCreate returns the command that registers an app for a user. The first address is the one that lists show.
func (a app) appsCreate(o *datadir.Flags) *cobra.Command {
	var in adminapi.NewApp
	var asJSON bool
	var uris []string
	c := &cobra.Command{
		Use: "create NAME", Short: "Register an app; its secret is shown once",
		Args:    cli.ExactArgs(1, "the name of one app"),
		Example: `  stagedoor apps create Weather --owner anna --redirect-uri https://weather.example.com/callback`,
		RunE: func(c *cobra.Command, args []string) error {
			in.Name = args[0]
			if len(uris) > 0 {
				in.RedirectURI, in.MoreURIs = uris[0], uris[1:]
			}
			return callAndPrint(c, a, o, asJSON, apiCall[adminapi.AppSecret]{method: "POST", path: "/apps", in: in,
				show: func(out io.Writer, made *adminapi.AppSecret) error {
					_, err := fmt.Fprintf(out,
						"client_id      %s\nclient_secret  %s\n\nThe secret of %s is not shown again.\n",
						made.ClientID, made.Secret, made.Name)
					return err
				}})
		},
	}
	c.Flags().StringVar(&in.Owner, "owner", "", "owner, a user")
	c.Flags().StringArrayVar(&uris, "redirect-uri", nil, redirectHelp)
	c.Flags().StringVar(&in.Description, "description", "", "description of the app for its users")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
