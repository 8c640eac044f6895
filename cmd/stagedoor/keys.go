package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"stagedoor/http/admin"
	"stagedoor/state"
	"stagedoor/state/journal"
)

// keyStore is where the commands find keys: in a running gateway, or in the
// data directory of one that is not running.
type keyStore interface {
	Keys(ctx context.Context) ([]state.Key, error)
	AddKey(ctx context.Context, k state.Key) error
	RevokeKey(ctx context.Context, id string) (state.Key, error)
}

func (a *app) keysCommand() *cobra.Command {
	var o overrides
	c := &cobra.Command{
		Use: "keys", Short: "Create, list and revoke gateway keys", Args: cobra.NoArgs,
		Long: `Create, list and revoke gateway keys. Changes act at once on a gateway that is
running on the data directory, and are kept in it otherwise. Keys written in the
configuration file are not among them.`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.PersistentFlags().StringVarP(&o.file, "config", "c", "", "configuration `file` that names the data directory")
	c.PersistentFlags().StringVar(&o.data, "data", "", "data `directory` of the gateway (default ./data)")
	c.AddCommand(a.keysCreate(&o), a.keysList(&o), a.keysRevoke(&o))
	return c
}

// withKeys opens the keys, lets use work on them and closes them.
func (a *app) withKeys(ctx context.Context, o *overrides, use func(keyStore) error) error {
	c, err := o.load(a.env)
	if err != nil {
		return err
	}
	if o.file == "" && o.data == "" {
		c.Data = "./data"
	}
	if c.Data == "memory" {
		return fmt.Errorf("%w: a gateway with data: memory keeps no keys; give --data DIRECTORY, or write keys into the configuration", errUsage)
	}
	client, err := admin.Dial(filepath.Join(c.Data, admin.SocketName))
	if err == nil {
		return use(client)
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	store, err := openStore(c.Data)
	if err != nil {
		return err
	}
	defer store.Close()
	return a.withClosedStore(store, use)
}

func (a *app) withClosedStore(store journal.Store, use func(keyStore) error) error {
	s, err := state.Open(store, time.Now)
	if err != nil {
		return storageError(err)
	}
	defer s.Close()
	return use(directKeys{s})
}

// directKeys are the keys of a store that this process has opened itself.
type directKeys struct{ *state.State }

func (d directKeys) Keys(context.Context) ([]state.Key, error) {
	return d.State.Keys(state.KeyFilter{}), nil
}

func (a *app) keysCreate(o *overrides) *cobra.Command {
	var k struct {
		name, user             string
		scopes, models, allow  []string
		rpm, tpm, concurrency  int64
		expires                time.Duration
		nothing, printJSONOnly bool
	}
	c := &cobra.Command{
		Use: "create", Short: "Create a key; it is shown once", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			secret, key, err := newKey(k.name)
			if err != nil {
				return err
			}
			key.User = k.user
			key.Limits = state.Limits{RPM: k.rpm, TPM: k.tpm, Concurrency: k.concurrency}
			if c.Flags().Changed("scope") {
				key.Scopes = k.scopes
			}
			if k.nothing {
				key.Scopes = []string{}
			}
			if c.Flags().Changed("model") {
				key.Models = k.models
			}
			if k.expires > 0 {
				key.Expires = key.Created.Add(k.expires)
			}
			if key.AllowIPs, err = state.ParseNetworks(k.allow); err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			return a.withKeys(c.Context(), o, func(s keyStore) error {
				if err := s.AddKey(c.Context(), key); err != nil {
					return err
				}
				if k.printJSONOnly {
					return json.NewEncoder(a.out).Encode(map[string]any{"id": key.ID, "key": secret, "name": key.Name})
				}
				_, err := fmt.Fprintf(a.out, "%s\n\nThis is key %s (%s). It is not shown again.\n", secret, key.ID, key.Name)
				return err
			})
		},
	}
	f := c.Flags()
	f.StringVar(&k.name, "name", "key", "what it is called in lists and logs")
	f.StringVar(&k.user, "user", "", "the user it belongs to")
	f.StringSliceVar(&k.scopes, "scope", nil, "what it may do, one or more of "+strings.Join(state.Scopes(), ", ")+" (default everything)")
	f.BoolVar(&k.nothing, "no-scopes", false, "a key that may do nothing yet")
	f.StringSliceVar(&k.models, "model", nil, "model names or patterns it may use (default all)")
	f.StringSliceVar(&k.allow, "allow-ip", nil, "addresses or networks it may come from (default any)")
	f.Int64Var(&k.rpm, "rpm", 0, "requests a minute; 0: no limit")
	f.Int64Var(&k.tpm, "tpm", 0, "tokens a minute; 0: no limit")
	f.Int64Var(&k.concurrency, "concurrency", 0, "requests at a time; 0: no limit")
	f.DurationVar(&k.expires, "expires-in", 0, "how long it is valid (default for ever)")
	f.BoolVar(&k.printJSONOnly, "json", false, "print JSON")
	return c
}

func (a *app) keysList(o *overrides) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List keys by id and prefix", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withKeys(c.Context(), o, func(s keyStore) error {
				keys, err := s.Keys(c.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return json.NewEncoder(a.out).Encode(keys)
				}
				return a.printKeys(keys)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) printKeys(keys []state.Key) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tKEY\tNAME\tSCOPES\tMODELS\tSTATE\tCREATED")
	for _, k := range keys {
		fmt.Fprintf(w, "%s\t%s%s...\t%s\t%s\t%s\t%s\t%s\n", k.ID, state.SecretPrefix, k.Prefix, k.Name,
			listed(k.Scopes), listed(k.Models), stateOf(&k, time.Now()), k.Created.Format(time.DateOnly))
	}
	return w.Flush()
}

func listed(set []string) string {
	switch {
	case set == nil:
		return "all"
	case len(set) == 0:
		return "none"
	}
	return strings.Join(set, ",")
}

func stateOf(k *state.Key, now time.Time) string {
	switch {
	case !k.Revoked.IsZero():
		return "revoked"
	case !k.Expires.IsZero() && !now.Before(k.Expires):
		return "expired"
	case !k.Enabled:
		return "disabled"
	}
	return "active"
}

func (a *app) keysRevoke(o *overrides) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "Revoke a key for good",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%w: give the id of one key, as keys list shows it", errUsage)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return a.withKeys(c.Context(), o, func(s keyStore) error {
				k, err := s.RevokeKey(c.Context(), args[0])
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(a.out, "revoked %s (%s)\n", k.ID, k.Name)
				return err
			})
		},
	}
}
