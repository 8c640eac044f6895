package admincli

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/adminapi"
)

// auditCommand returns "stagedoor audit", which reads the audit log through the admin API.
func (a app) auditCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "audit", Short: "Show the audit log", Args: cli.NoArgs,
		Long: `Show the audit log: every change of users, groups, keys, apps, credits, codes and
providers, and every sign-in, with who made it, how and from where. Secrets are never
in it. --json prints all of each change, with the request id.`,
		Example: `  stagedoor audit list
  stagedoor audit list --actor anna --action key --from 2026-01-01
  stagedoor audit list --target laptop --json`,
		RunE: cli.Help,
	}
	o := datadir.AddFlags(c, a.App)
	c.AddCommand(listCommand(a, o, listing[adminapi.Change]{
		short: "List changes, newest first", path: "/audit",
		head: "TIME ACTOR FROM ACTION TARGET CHANGES",
		cells: func(r *adminapi.Change) []any {
			actor := r.Actor.Kind
			if r.Actor.Name != "" {
				actor += " " + r.Actor.Name
			}
			target := r.Target.Kind + " " + cmp.Or(r.Target.Name, r.Target.ID)
			var changes []string
			for _, f := range r.Changes {
				// A field that had no value before is new, and an arrow from nothing would say less.
				if f.Before == nil {
					changes = append(changes, fmt.Sprintf("%s=%v", f.Field, f.After))
				} else {
					changes = append(changes, fmt.Sprintf("%s=%v->%v", f.Field, f.Before, f.After))
				}
			}
			return []any{r.Time.UTC().Format(time.RFC3339), actor, r.Actor.Address, r.Action, target,
				strings.Join(changes, " ")}
		},
		filters: []filter{
			{"actor", "only changes by this user, app or kind of actor", nil},
			{"action", "only this action, such as key.create, or all actions with this prefix, such as key", nil},
			{"target", "only changes of this kind of target, or with this text in the target's id or name", nil},
			{"from", "only from this day or time on", nil},
			{"to", "only before this day or time", nil},
		},
	}))
	return c
}
