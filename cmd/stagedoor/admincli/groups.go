package admincli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/adminapi"
	"stagedoor/providers/shapes/registry"
)

func (a app) groupsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "groups", Short: "Create, list, change and delete groups of users", Args: cli.NoArgs,
		Long: `Create, list, change and delete groups of users. A group has a ceiling that binds each
member beside the member's own, and a budget for all members together. A user is in at most
one group. Changes act at once, also on a running gateway.`,
		RunE: cli.Help,
	}
	o := datadir.AddFlags(c, a.App)
	c.AddCommand(a.groupsCreate(o), a.groupsList(o), a.groupsShow(o), a.groupsUpdate(o), a.groupsDelete(o),
		a.groupsAdd(o), a.groupsRemove(o))
	return c
}

// ceilingFlags are the flags of the ceiling of a user or group.
type ceilingFlags struct {
	scopes, models []string
	noScopes       bool
	createKeys     bool
	budget         budgetFlags
}

func (f *ceilingFlags) flags(c *cobra.Command) {
	set := c.Flags()
	set.StringSliceVar(&f.scopes, "scope", nil,
		"what keys may do, one or more of all, "+strings.Join(registry.Scopes(), ", "))
	set.BoolVar(&f.noScopes, "no-scopes", false, "keys may do nothing")
	set.StringSliceVar(&f.models, "model", nil, "model names or patterns that keys may use; '*': all")
	set.BoolVar(&f.createKeys, "create-keys", true,
		"may create keys and developer tokens on the account page; --create-keys=false: may not")
	f.budget.flags(c)
	cli.CompleteWords(c, "scope", append([]string{"all"}, registry.Scopes()...)...)
}

// change returns the change of a ceiling for the flags that were given.
func (f *ceilingFlags) change(given func(string) bool) (adminapi.Optional[adminapi.CeilingChange], error) {
	var none adminapi.Optional[adminapi.CeilingChange]
	if err := (&keyFlags{scopes: f.scopes, models: f.models}).rejectEmptySets(); err != nil {
		return none, err
	}
	if f.noScopes && len(f.scopes) > 0 {
		return none, fmt.Errorf("%w: --scope and --no-scopes exclude each other", cli.ErrUsage)
	}
	budget, err := f.budget.change(given)
	if err != nil {
		return none, err
	}
	change := adminapi.CeilingChange{Budget: budget}
	switch {
	case f.noScopes:
		change.Scopes = adminapi.Some([]string{})
	case given("scope"):
		change.Scopes = setOrNull(f.scopes, "all")
	}
	if given("model") {
		change.Models = setOrNull(f.models, "*")
	}
	if given("create-keys") {
		change.CreateKeys = &f.createKeys
	}
	if !change.Scopes.Given && !change.Models.Given && !change.Budget.Given && change.CreateKeys == nil {
		return none, nil
	}
	return adminapi.Some(change), nil
}

func (a app) groupsCreate(o *datadir.Flags) *cobra.Command {
	var f ceilingFlags
	var asJSON bool
	c := &cobra.Command{
		Use: "create NAME", Short: "Create a group", Args: cli.ExactArgs(1, "the name of one group"),
		Example: `  stagedoor groups create staff --model 'gpt-*' --budget 500 --budget-window month
  stagedoor groups create guests --scope chat --create-keys=false`,
		RunE: func(c *cobra.Command, args []string) error {
			ceiling, err := f.change(c.Flags().Changed)
			if err != nil {
				return err
			}
			in := adminapi.NewGroup{Name: args[0], Ceiling: ceiling}
			q := apiCall[adminapi.Group]{method: "POST", path: "/groups", in: in, show: printGroup}
			return callAndPrint(c, a, o, asJSON, q)
		},
	}
	f.flags(c)
	jsonFlag(c, &asJSON)
	return c
}

func (a app) groupsList(o *datadir.Flags) *cobra.Command {
	return listCommand(a, o, listing[adminapi.Group]{
		short: "List groups", path: "/groups",
		head: "ID NAME MEMBERS SCOPES MODELS CREATE-KEYS BUDGET SPENT CREATED",
		cells: func(g *adminapi.Group) []any {
			return []any{g.ID, g.Name, g.Members, setText(g.Ceiling.Scopes), setText(g.Ceiling.Models),
				g.Ceiling.CreateKeys, budgetText(g.Ceiling.Budget), cli.Amount(g.Spent.Total), formatDay(&g.Created)}
		},
	})
}

func (a app) groupsShow(o *datadir.Flags) *cobra.Command {
	var members adminapi.List[adminapi.Member]
	act := func(c *cobra.Command, api *adminapi.Client, g adminapi.Group, _ []string) (adminapi.Group, error) {
		return g, api.Do(c.Context(), "GET", groupPath(g)+"/members", url.Values{"limit": {"500"}}, nil, &members)
	}
	c := &cobra.Command{Use: "show NAME", Short: "Show a group, its members and what they have spent"}
	return a.aboutGroup(o, c, 1, act,
		func(out io.Writer, g *adminapi.Group) error {
			names := make([]string, len(members.Data))
			for i, m := range members.Data {
				names[i] = cli.Printable(m.Username)
			}
			if members.Next != nil {
				names = append(names, "...")
			}
			err := printGroup(out, g)
			if err == nil && len(names) > 0 {
				_, err = fmt.Fprintf(out, "users        %s\n", strings.Join(names, ", "))
			}
			return err
		})
}

func (a app) groupsUpdate(o *datadir.Flags) *cobra.Command {
	var f ceilingFlags
	var name string
	c := &cobra.Command{
		Use: "update NAME", Short: "Change a group, at once for all requests of its members",
		Long: `Change a group, at once for all requests of its members. Flags that are not given change
nothing.`,
		Example: `  stagedoor groups update staff --budget 700
  stagedoor groups update staff --scope all --model '*' --budget 0 --create-keys`,
	}
	act := func(c *cobra.Command, api *adminapi.Client, g adminapi.Group, _ []string) (out adminapi.Group, err error) {
		ceiling, err := f.change(c.Flags().Changed)
		if err != nil {
			return out, err
		}
		change := adminapi.GroupChange{Ceiling: ceiling}
		if c.Flags().Changed("name") {
			change.Name = &name
		}
		if change.Name == nil && !ceiling.Given {
			return out, fmt.Errorf("%w: say what to change: --name, --scope, --no-scopes, --model, --create-keys, "+
				"--budget or --budget-window", cli.ErrUsage)
		}
		return out, api.Do(c.Context(), "PATCH", groupPath(g), nil, change, &out)
	}
	a.aboutGroup(o, c, 1, act, printGroup)
	c.Flags().StringVar(&name, "name", "", "a new name")
	f.flags(c)
	return c
}

func (a app) groupsDelete(o *datadir.Flags) *cobra.Command {
	return a.aboutGroup(o, &cobra.Command{Use: "delete NAME", Short: "Delete a group that has no members"}, 1,
		func(c *cobra.Command, api *adminapi.Client, g adminapi.Group, _ []string) (out adminapi.Group, err error) {
			return out, api.Do(c.Context(), "DELETE", groupPath(g), nil, nil, &out)
		}, printName("deleted the group %s\n"))
}

func (a app) groupsAdd(o *datadir.Flags) *cobra.Command {
	return a.aboutGroup(o, &cobra.Command{Use: "add NAME USER", Short: "Add a user to a group"}, 2,
		func(c *cobra.Command, api *adminapi.Client, g adminapi.Group, args []string) (out adminapi.Group, err error) {
			in := adminapi.NewMember{User: args[1]}
			return out, api.Do(c.Context(), "POST", groupPath(g)+"/members", nil, in, &out)
		}, printGroup)
}

func (a app) groupsRemove(o *datadir.Flags) *cobra.Command {
	return a.aboutGroup(o, &cobra.Command{Use: "remove NAME USER", Short: "Remove a user from a group"}, 2,
		func(c *cobra.Command, api *adminapi.Client, g adminapi.Group, args []string) (out adminapi.Group, err error) {
			path := groupPath(g) + "/members/" + url.PathEscape(args[1])
			return out, api.Do(c.Context(), "DELETE", path, nil, nil, &out)
		}, printGroup)
}

func groupPath(g adminapi.Group) string { return "/groups/" + strconv.FormatInt(g.ID, 10) }

// aboutGroup completes a command for the group that its first argument names. act changes or reads the group.
func (a app) aboutGroup(o *datadir.Flags, c *cobra.Command, args int,
	act func(*cobra.Command, *adminapi.Client, adminapi.Group, []string) (adminapi.Group, error),
	show func(io.Writer, *adminapi.Group) error) *cobra.Command {
	var asJSON bool
	c.Args = cli.ExactArgs(args, "the name of a group")
	if args == 2 {
		c.Args = cli.ExactArgs(args, "the names of a group and a user")
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.withAPI(c.Context(), o, func(api *adminapi.Client) error {
			g, err := groupNamed(c.Context(), api, args[0])
			if err == nil {
				g, err = act(c, api, g, args)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return cli.PrintJSON(a.Out, g)
			}
			return show(a.Out, &g)
		})
	}
	jsonFlag(c, &asJSON)
	return c
}

func groupNamed(ctx context.Context, api *adminapi.Client, name string) (adminapi.Group, error) {
	var found adminapi.List[adminapi.Group]
	if err := api.Do(ctx, "GET", "/groups", url.Values{"name": {name}}, nil, &found); err != nil {
		return adminapi.Group{}, err
	}
	if len(found.Data) == 0 {
		id, err := findGroup(ctx, api, name) // by its id, or with a name that is nearly this
		if err != nil {
			return adminapi.Group{}, err
		}
		var g adminapi.Group
		return g, api.Do(ctx, "GET", "/groups/"+id, nil, nil, &g)
	}
	return found.Data[0], nil
}

func printName(format string) func(io.Writer, *adminapi.Group) error {
	return func(out io.Writer, g *adminapi.Group) error {
		_, err := fmt.Fprintf(out, format, cli.Printable(g.Name))
		return err
	}
}

func printGroup(out io.Writer, g *adminapi.Group) error {
	_, err := fmt.Fprintf(out, "id           %d\nname         %s\nmembers      %d\n%s",
		g.ID, cli.Printable(g.Name), g.Members, ceilingText(&g.Ceiling, &g.Spent))
	return err
}

// ceilingText formats a ceiling and the spending that counts against its budget.
func ceilingText(c *adminapi.Ceiling, s *adminapi.Spent) string {
	return fmt.Sprintf("scopes       %s\nmodels       %s\ncreate keys  %t\nbudget       %s\n"+
		"spent        %s; today %s, this month %s\n",
		setText(c.Scopes), setText(c.Models), c.CreateKeys, budgetText(c.Budget),
		cli.Dollars(s.Total), cli.Dollars(s.Day), cli.Dollars(s.Month))
}

func setText(s *[]string) string {
	if s == nil {
		return listed(nil)
	}
	return listed(append([]string{}, *s...))
}

func budgetText(b *adminapi.Budget) string {
	if b == nil {
		return "none"
	}
	return cli.Dollars(b.Amount) + " (" + b.Window + ")"
}
