// Package admincli implements the commands that administer a gateway: keys, users, groups, apps, credits, codes,
// receipts, usage and the token of the admin API.
//
// The commands call the admin API, or the control socket where the API lacks an operation. If no gateway runs on the
// data directory, they start the same API on the directory itself, so each operation behaves the same in both cases.
package admincli

import (
	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
)

// app holds what all commands of this package share.
type app struct{ *cli.App }

// Commands returns the commands of administration, one for each kind of thing that they change.
func Commands(shared *cli.App) []*cobra.Command {
	a := app{shared}
	return []*cobra.Command{
		a.keysCommand(), a.usersCommand(), a.groupsCommand(), a.appsCommand(), a.creditsCommand(), a.codesCommand(),
		a.receiptsCommand(), a.usageCommand(), a.auditCommand(), a.adminCommand(),
	}
}
