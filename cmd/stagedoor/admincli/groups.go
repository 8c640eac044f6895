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

// groupsCommand returns "stagedoor groups", which administers groups of users and their ceilings.
func (a app) groupsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "groups", Short: "Create, list, change and delete groups of users", Args: cli.NoArgs,
		Long: `Create, list, change and delete groups of users. A group has a ceiling for each
member, which applies beside the member's own ceiling, and a budget for all members together.
A user is in at most one group. Changes take effect at once, also in a running gateway.`,
		RunE: cli.Help,
	}
	o := datadir.AddFlags(c, a.App)
	c.AddCommand(a.groupsCreate(o), a.groupsList(o), a.groupsShow(o), a.groupsUpdate(o), a.groupsDelete(o),
		a.groupsAdd(o), a.groupsRemove(o), a.groupsLead(o), a.groupsUnlead(o))
	return c
}

// ceilingFlags are the flags of the ceiling of a user or group.
type ceilingFlags struct {
	scopes, models []string
	noScopes       bool
	createKeys     bool
	budget         budgetFlags
}

// flags adds the flags of a ceiling to a command. Their defaults are never sent (see change), so they only document
// what a ceiling allows if nothing is said.
func (f *ceilingFlags) flags(c *cobra.Command) {
	set := c.Flags()
	set.StringSliceVar(&f.scopes, "scope", nil,
		"what keys may do, one or more of all, "+strings.Join(registry.Scopes(), ", "))
	set.BoolVar(&f.noScopes, "no-scopes", false, "leave keys without any scope")
	set.StringSliceVar(&f.models, "model", nil, "names or patterns of the models that keys may use; '*': all")
	set.BoolVar(&f.createKeys, "create-keys", true,
		"may create keys and developer tokens on the account page; --create-keys=false: may not")
	f.budget.flags(c)
	cli.CompleteWords(c, "scope", append([]string{"all"}, registry.Scopes()...)...)
}

// change returns the change of a ceiling for the flags that were given. Without a flag it returns an Optional that is
// not given, which leaves the ceiling as it is.
// A ceiling in which nothing was given must not be sent, because null and an empty object mean
// something to the API.
func (f *ceilingFlags) change(given func(string) bool) (adminapi.Optional[adminapi.CeilingChange], error) {
	var none adminapi.Optional[adminapi.CeilingChange]
	// An empty set would mean "nothing" for a ceiling, and a script with an unset variable hardly means that. The
	// word for it is --no-scopes.
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

// groupsCreate returns the command that makes a group, with a ceiling if flags of one are given.
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

// groupsList returns the command that lists groups with their ceilings and what their members have spent together.
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

// groupsShow returns the command that prints a group and the names of its members. It reads one page of members and
// marks a longer list with an ellipsis, because the command is for an overview and a group may have thousands.
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
				if names[i] = cli.Printable(m.Username); m.Lead {
					names[i] += " (lead)"
				}
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

// groupsUpdate returns the command that renames a group or changes its ceiling. A call without any change is refused,
// because it is more often a mistyped flag than an intention.
func (a app) groupsUpdate(o *datadir.Flags) *cobra.Command {
	var f ceilingFlags
	var name string
	c := &cobra.Command{
		Use: "update NAME", Short: "Change a group, at once for all requests of its members",
		Long: `Change a group. The change takes effect at once for all requests of its members. Only the
settings whose flags are given change.`,
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
	c.Flags().StringVar(&name, "name", "", "new name of the group")
	f.flags(c)
	return c
}

// groupsDelete returns the command that deletes a group. The API refuses a group that has members, because its
// ceiling would silently stop to bind them.
func (a app) groupsDelete(o *datadir.Flags) *cobra.Command {
	return a.aboutGroup(o, &cobra.Command{Use: "delete NAME", Short: "Delete a group that has no members"}, 1,
		func(c *cobra.Command, api *adminapi.Client, g adminapi.Group, _ []string) (out adminapi.Group, err error) {
			return out, api.Do(c.Context(), "DELETE", groupPath(g), nil, nil, &out)
		}, printName("deleted the group %s\n"))
}

// groupsAdd returns the command that puts a user into a group.
func (a app) groupsAdd(o *datadir.Flags) *cobra.Command {
	return a.aboutGroup(o, &cobra.Command{Use: "add NAME USER", Short: "Add a user to a group"}, 2,
		func(c *cobra.Command, api *adminapi.Client, g adminapi.Group, args []string) (out adminapi.Group, err error) {
			in := adminapi.NewMember{User: args[1]}
			return out, api.Do(c.Context(), "POST", groupPath(g)+"/members", nil, in, &out)
		}, printGroup)
}

// groupsRemove returns the command that takes a user out of a group.
func (a app) groupsRemove(o *datadir.Flags) *cobra.Command {
	return a.aboutGroup(o, &cobra.Command{Use: "remove NAME USER", Short: "Remove a user from a group"}, 2,
		func(c *cobra.Command, api *adminapi.Client, g adminapi.Group, args []string) (out adminapi.Group, err error) {
			path := groupPath(g) + "/members/" + url.PathEscape(args[1])
			return out, api.Do(c.Context(), "DELETE", path, nil, nil, &out)
		}, printGroup)
}

// groupsLead returns the command that lets a member lead the group.
func (a app) groupsLead(o *datadir.Flags) *cobra.Command {
	return a.aboutGroup(o, &cobra.Command{
		Use: "lead NAME USER", Short: "Make a member a lead of the group",
		Long: `Make a member a lead of the group. On the page Group, a lead sees the members with their keys
and spending, invites and removes members, and creates, disables and limits keys within the
ceiling of the group. A lead that leaves the group is no longer its lead.`,
		Example: `  stagedoor groups lead staff anna`,
	}, 2, leadCall("PUT"), printGroup)
}

// groupsUnlead returns the command that takes the lead away. The member stays in the group.
func (a app) groupsUnlead(o *datadir.Flags) *cobra.Command {
	return a.aboutGroup(o, &cobra.Command{Use: "unlead NAME USER", Short: "Stop a member from leading a group"}, 2,
		leadCall("DELETE"), printGroup)
}

// leadCall returns the call of both commands: PUT lets the member of the second argument lead, and DELETE ends that.
// Either may be repeated.
func leadCall(method string) func(*cobra.Command, *adminapi.Client, adminapi.Group, []string) (adminapi.Group, error) {
	return func(c *cobra.Command, api *adminapi.Client, g adminapi.Group,
		args []string) (out adminapi.Group, err error) {
		return out, api.Do(c.Context(), method, groupPath(g)+"/leads/"+url.PathEscape(args[1]), nil, nil, &out)
	}
}

// groupPath returns the path of a group in the admin API.
func groupPath(g adminapi.Group) string { return "/groups/" + strconv.FormatInt(g.ID, 10) }

// aboutGroup completes a command for the group that its first argument names. act changes or reads the group. show
// prints the group that act returns. args is the number of arguments: 1 for a group, 2 for a group and a user.
// All commands for one group read the group first. That costs one call and gives a good error for a
// mistyped name before anything is changed.
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

// groupNamed returns the group with this name or id. It asks the API for the exact name first, which is one call, and
// lists all groups only for an id or for the suggestion in the error.
// A name that looks like an id is still looked up as a name first, since a group may be called 7.
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

// printName returns a function that prints one line with the name of a group.
func printName(format string) func(io.Writer, *adminapi.Group) error {
	return func(out io.Writer, g *adminapi.Group) error {
		_, err := fmt.Fprintf(out, format, cli.Printable(g.Name))
		return err
	}
}

// printGroup prints a group as lines of names and values.
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

// setText formats a set of scopes or models: "all" for null, "none" for an empty set, otherwise the members.
func setText(s *[]string) string {
	if s == nil {
		return listed(nil)
	}
	// The copy is never nil. A set that decoded to a nil slice would otherwise be printed as "all".
	return listed(append([]string{}, *s...))
}

// budgetText formats a budget as dollars with its window, or as "none".
func budgetText(b *adminapi.Budget) string {
	if b == nil {
		return "none"
	}
	return cli.Dollars(b.Amount) + " (" + b.Window + ")"
}
