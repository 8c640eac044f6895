// Package admincli implements the commands that administer a gateway: keys, users, groups, apps, credits, codes,
// receipts, usage and the token of the admin API.
//
// The commands call the admin API, or the control socket where the API lacks an operation. If no gateway runs on the
// data directory, they start the same API on the directory itself, so each operation behaves the same in both cases.
//
// # How a command is made
//
// A command that lists things is a listing, one that acts on a single thing is an itemAction, and one with flags of
// its own ends in callAndPrint. All of them take --json, which prints the reply of the API as it is, so that scripts
// do not depend on the tables.
//
// Keys, apps, groups and codes are named by their ids, by a beginning of the id or by their names (pick.go). A name
// that fits several things, or one of a user where the operator's is meant, is refused with the ids to choose from.
//
// # Output
//
// Lists are tables for people, in columns with a head, and their texts are made printable (cli.Printable).
// Amounts are in dollars, while the API and --json have micro-dollars. A secret is printed once, alone on the
// standard output, so that a script can read it, and what it is goes to the standard error.
//
// # Errors
//
// A refusal of the API is printed with its message. cli.ErrUsage marks a wrong command line, and
// datadir.Unavailable what passes by itself; the exit codes follow from them.
//
// # Files
//
//	commands.go call.go resource.go pick.go   the list of commands, calls of the API, names of things
//	keys.go update.go                         keys, and budgets for all commands
//	people.go lookup.go invitations.go        users, apps, invitations
//	groups.go credits.go codes.go             groups and ceilings, accounts, redeem codes
//	usage.go audit.go admin.go                reports, the audit log, the token of the admin API
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
