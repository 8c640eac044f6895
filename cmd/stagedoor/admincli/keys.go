package admincli

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/admin"
	"stagedoor/http/adminapi"
	"stagedoor/providers/shapes/registry"
	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
)

// keyStore holds keys: in a running gateway, or in the data directory if no gateway runs.
type keyStore interface {
	AddKey(ctx context.Context, k identity.Key) error
}

// keysCommand returns "stagedoor keys", which administers the keys that are in the state.
func (a app) keysCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "keys", Short: "Create, list, change and revoke gateway keys", Args: cli.NoArgs,
		Long: `Create, list, change and revoke gateway keys. Changes take effect at once in
a gateway that runs on the data directory. Without one they change the directory itself.
Keys of the configuration file are not listed and cannot be changed here.`,
		RunE: cli.Help,
	}
	o := datadir.AddFlags(c, a.App)
	c.AddCommand(a.keysCreate(o), a.keysList(o), a.keysShow(o), a.keysUpdate(o), a.keysRotate(o), a.keysRevoke(o))
	return c
}

// withKeys calls use with the keys of the data directory.
// A key can be made without a running gateway, so that a script can prepare a data directory before
// the first start.
func (a app) withKeys(o *datadir.Flags, use func(keyStore) error) error {
	return o.Use(func(c *admin.Client) error { return use(c) },
		func(s *state.State) error { return use(directKeys{s}) })
}

// directKeys implements keyStore on a state that this process has opened itself.
type directKeys struct{ *state.State }

// AddKey implements keyStore. The user that the key names, if any, must exist and be active.
func (d directKeys) AddKey(ctx context.Context, k identity.Key) error {
	return identity.CreateKeyOfUser(datadir.AsCommand(ctx), d.State, k)
}

// keyFlags are the flags of keys create and keys update.
type keyFlags struct {
	name, user            string
	scopes, models, allow []string
	rpm, tpm, concurrency int64
	onDisconnect          string
	expires, recordFor    cli.Duration
	budget                budgetFlags
	nothing, asJSON       bool
}

// flags adds the flags that describe a new key. keys update declares the same names itself, because there a flag that
// is not given changes nothing and has another help text.
func (k *keyFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&k.name, "name", "key", "name in lists and logs")
	f.StringVar(&k.user, "user", "", "owner, a user")
	f.StringSliceVar(&k.scopes, "scope", nil,
		"what it may do, one or more of "+strings.Join(registry.Scopes(), ", ")+" (default all)")
	f.BoolVar(&k.nothing, "no-scopes", false, "create the key without any scope")
	f.StringSliceVar(&k.models, "model", nil, "names or patterns of the models that the key may use (default all)")
	f.StringSliceVar(&k.allow, "allow-ip", nil, "addresses or networks from which the key is accepted (default any)")
	f.Int64Var(&k.rpm, "rpm", 0, "requests per minute; 0: no limit")
	f.Int64Var(&k.tpm, "tpm", 0, "tokens per minute; 0: no limit")
	f.Int64Var(&k.concurrency, "concurrency", 0, "concurrent requests; 0: no limit")
	f.Var(&k.expires, "expires-in", "time until the key expires, such as 30d (default never)")
	f.StringVar(&k.onDisconnect, "on-disconnect", "model", disconnectHelp)
	f.BoolVar(&k.asJSON, "json", false, "print JSON")
}

const disconnectHelp = "handling of requests whose client disconnects: cancel, finish, detach, or model (its setting)"

// rejectEmptySets returns an error for a set that is given and empty, because a variable that a script forgot to set
// must not create a key that allows everything.
func (k *keyFlags) rejectEmptySets() error {
	for _, f := range []struct {
		name string
		set  []string
	}{{"scope", k.scopes}, {"model", k.models}, {"allow-ip", k.allow}} {
		if f.set != nil && (len(f.set) == 0 || slices.Contains(f.set, "")) {
			return fmt.Errorf("%w: --%s is empty: give a value, or leave it out", cli.ErrUsage, f.name)
		}
	}
	return nil
}

// key returns the key that the flags describe and its secret.
// "all" and "*" become the absence of a set. Stored as words, they would have to be recognised at
// every check of a permission.
func (k *keyFlags) key() (secret string, key identity.Key, err error) {
	if err := k.rejectEmptySets(); err != nil {
		return "", key, err
	}
	// An unknown scope is refused here, because a key with a mistyped scope would look right in lists and be refused
	// by every route.
	for _, s := range k.scopes {
		if s != "all" && !slices.Contains(registry.Scopes(), s) {
			return "", key, fmt.Errorf("%w: --scope %q is not known, use all or some of %s", cli.ErrUsage, s,
				strings.Join(registry.Scopes(), ", "))
		}
	}
	if k.nothing && len(k.scopes) > 0 {
		return "", key, fmt.Errorf("%w: --scope and --no-scopes exclude each other", cli.ErrUsage)
	}
	if min(k.rpm, k.tpm, k.concurrency, int64(k.expires)) < 0 {
		return "", key, fmt.Errorf("%w: limits and --expires-in must not be negative", cli.ErrUsage)
	}
	if secret, key, err = NewKey(k.name); err != nil {
		return "", key, err
	}
	if key.AllowIPs, err = identity.ParseNetworks(k.allow); err != nil {
		return "", key, fmt.Errorf("%w: %w", cli.ErrUsage, err)
	}
	if key.User = k.user; k.onDisconnect != "model" {
		if key.OnDisconnect, err = identity.DisconnectPolicyOf(k.onDisconnect); err != nil || k.onDisconnect == "" {
			return "", key, fmt.Errorf("%w: --on-disconnect must be cancel, finish, detach or model", cli.ErrUsage)
		}
	}
	key.Limits = identity.Limits{RPM: k.rpm, TPM: k.tpm, Concurrency: k.concurrency}
	if err := k.budget.check(); err != nil {
		return "", key, err
	}
	if k.budget.amount > 0 {
		key.Budget, key.Window = int64(k.budget.amount), budget.Window(k.budget.window)
	}
	if k.nothing {
		key.Scopes = []string{}
	}
	if len(k.scopes) > 0 && !slices.Contains(k.scopes, "all") {
		key.Scopes = k.scopes
	}
	if len(k.models) > 0 && !slices.Contains(k.models, "*") {
		key.Models = k.models
	}
	if k.expires > 0 {
		key.Expires = key.Created.Add(time.Duration(k.expires))
	}
	return secret, key, nil
}

// keysCreate returns the command that makes a key. The secret is printed alone on standard output (see cli.ShowOnce),
// and this process makes it, so it does not travel over the control socket: the gateway gets only its hash.
func (a app) keysCreate(o *datadir.Flags) *cobra.Command {
	var k keyFlags
	c := &cobra.Command{
		Use: "create", Short: "Create a key; it is shown once", Args: cli.NoArgs,
		Example: `  stagedoor keys create --name laptop
  stagedoor keys create --name ci --scope chat,models --model 'gpt-*' --rpm 60 --expires-in 30d
  stagedoor keys create --user anna --budget 20 --budget-window month`,
		RunE: func(c *cobra.Command, _ []string) error {
			secret, key, err := k.key()
			if err != nil {
				return err
			}
			return a.withKeys(o, func(s keyStore) error {
				if err := s.AddKey(c.Context(), key); err != nil {
					return err
				}
				if k.asJSON {
					return cli.PrintJSON(a.Out, struct {
						ID   string `json:"id"`
						Key  string `json:"key"`
						Name string `json:"name"`
					}{key.ID, secret, key.Name})
				}
				return a.ShowOnce(secret, "This is key %s (%s).", key.ID, key.Name)
			})
		},
	}
	k.flags(c.Flags())
	k.budget.flags(c)
	cli.CompleteWords(c, "scope", append([]string{"all"}, registry.Scopes()...)...)
	return c
}

// keysList returns the command that lists keys by id and prefix.
func (a app) keysList(o *datadir.Flags) *cobra.Command {
	return listCommand(a, o, listing[adminapi.Key]{
		short: "List keys by id and prefix", path: "/keys",
		head: "ID KEY NAME USER SCOPES MODELS STATE CREATED",
		cells: func(k *adminapi.Key) []any {
			return []any{k.ID, k.Prefix + "...", k.Name, k.User, setText(k.Scopes), setText(k.Models), k.State,
				formatDay(&k.Created)}
		},
		filters: []filter{
			{"user", "only rows of this user", nil},
			{"state", "live: leave out keys that are revoked or expired", []string{"live", "all"}},
		},
	})
}

// listed formats a set of words: nil stands for all of them, and a set without members for none.
func listed(set []string) string {
	switch {
	case set == nil:
		return "all"
	case len(set) == 0:
		return "none"
	}
	return strings.Join(set, ",")
}

// aKey describes the argument of commands for one key.
const aKey = "one key, by its id, the beginning of that, or its name if it has no user"

// keysRotate returns the command that replaces the secret of a key. The default overlap is a day, in which both
// secrets are accepted.
func (a app) keysRotate(o *datadir.Flags) *cobra.Command {
	overlap := cli.Duration(24 * time.Hour)
	asJSON := false
	c := &cobra.Command{
		Use: "rotate KEY", Short: "Give a key a new secret; it is shown once", Args: cli.ExactArgs(1, aKey),
		Long: `Give a key a new secret, which is shown once. The old secret stays valid for the time
of --overlap, so that programs can be updated one after the other. The key keeps its
limits, spending and history.`,
		Example: `  stagedoor keys rotate ci
  stagedoor keys rotate ci --overlap 0`,
		RunE: func(c *cobra.Command, args []string) error {
			seconds := int64(time.Duration(overlap) / time.Second)
			return callAndPrint(c, a, o, asJSON, apiCall[adminapi.CreatedKey]{method: "POST", path: "/keys/",
				suffix: "/secret", item: args[0], find: findKey, in: adminapi.Rotation{Overlap: &seconds},
				show: func(_ io.Writer, k *adminapi.CreatedKey) error {
					until := "The old secret has ended."
					if k.Previous != nil {
						until = "The old secret works until " + k.Previous.UTC().Format(time.RFC3339) + "."
					}
					return a.ShowOnce(k.Secret, "This is the new secret of key %s (%s). %s", k.ID,
						cli.Printable(k.Name), until)
				}})
		},
	}
	c.Flags().Var(&overlap, "overlap", "time for which the old secret stays valid, at most 30d; 0: end it now")
	jsonFlag(c, &asJSON)
	c.ValidArgsFunction = a.completeKeys(o)
	return c
}

// keysRevoke returns the command that ends a key for good.
func (a app) keysRevoke(o *datadir.Flags) *cobra.Command {
	c := itemCommand(a, o, itemAction[adminapi.Key]{
		use: "revoke KEY", short: "Revoke a key for good", what: aKey,
		method: "DELETE", path: "/keys/", find: findKey,
		show: func(out io.Writer, k *adminapi.Key) error {
			_, err := fmt.Fprintf(out, "revoked %s (%s)\n", k.ID, cli.Printable(k.Name))
			return err
		},
	})
	c.ValidArgsFunction = a.completeKeys(o)
	return c
}

// completeKeys completes arguments with the ids of keys that are not revoked.
// An error is reported to the shell as a directive and not printed, because a message would land in
// the middle of the command line that the user is typing.
func (a app) completeKeys(o *datadir.Flags) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var ids []cobra.Completion
		// A shell completes while the user types, so nothing may be created or reported here.
		if len(args) > 0 || o.RequireExisting() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		err := a.withAPI(c.Context(), o, func(api *adminapi.Client) error {
			keys, err := listAll[adminapi.Key](c.Context(), api, "/keys")
			for _, k := range keys {
				if k.Revoked == nil {
					ids = append(ids, cobra.CompletionWithDesc(k.ID, k.Name))
				}
			}
			return err
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

// NewKey returns a key that allows everything and does not expire, with its secret.
func NewKey(name string) (secret string, key identity.Key, err error) {
	secret, prefix, hash, err := identity.NewSecret(rand.Reader)
	if err != nil {
		return "", identity.Key{}, err
	}
	now := time.Now()
	id, err := state.NewID("key_", now, rand.Reader)
	if err != nil {
		return "", identity.Key{}, err
	}
	return secret, identity.Key{ID: id, Prefix: prefix, Hash: hash, Name: name, Enabled: true, Created: now}, nil
}
