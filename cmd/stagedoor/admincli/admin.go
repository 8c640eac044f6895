package admincli

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/admin"
	"stagedoor/state"
)

// adminCommand returns "stagedoor admin", the group of commands about the admin API itself.
func (a app) adminCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "admin", Short: "Create the token of the admin API", Args: cli.NoArgs,
		Long: `Create the token that programs need for the admin API, which is below /admin/v1 of
the gateway. The other commands can do the same things and need no token.`,
		RunE: cli.Help,
	}
	o := datadir.AddFlags(c, a.App)
	c.AddCommand(a.adminToken(o))
	return c
}

// adminToken returns the command that replaces the token of the admin API, or removes it with --remove. Only the hash
// of the token is stored, so a lost token cannot be shown again and is replaced by a new one.
func (a app) adminToken(o *datadir.Flags) *cobra.Command {
	var remove bool
	c := &cobra.Command{
		Use: "token", Short: "Create a new token, which replaces the previous one; it is shown once", Args: cli.NoArgs,
		Long: `Create a new token of the admin API, which is shown once. It replaces the token that
this command created before. A token in the configuration (admin.token) stays valid
beside it.`,
		RunE: func(c *cobra.Command, _ []string) error {
			raw := make([]byte, 32)
			if _, err := rand.Read(raw); err != nil {
				return err
			}
			token := "sd-admin-" + base64.RawURLEncoding.EncodeToString(raw)
			hash := state.HashSecret(token)
			if remove {
				// The zero hash matches no token.
				hash = state.Hash{}
			}
			// The admin API cannot replace its own token, because a stolen token must not be able to lock out the
			// operator. The control socket can, and so can this process where no gateway runs.
			err := o.Use(func(running *admin.Client) error { return running.SetAdminToken(c.Context(), hash) },
				func(s *state.State) error { return admin.SetToken(datadir.AsCommand(c.Context()), s, hash) })
			if err != nil {
				return err
			}
			if remove {
				_, err = fmt.Fprintln(a.Out, "the token that was made by command is gone")
				return err
			}
			return a.ShowOnce(token, "This is the token of the admin API.")
		},
	}
	c.Flags().BoolVar(&remove, "remove", false, "end the previous token without creating a new one")
	return c
}
