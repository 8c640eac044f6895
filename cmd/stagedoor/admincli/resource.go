package admincli

import (
	"io"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/adminapi"
)

// A listing describes a command that prints one page of a list of the admin API.
type listing[T any] struct {
	short, path string
	head        string // names of the columns
	cells       func(*T) []any
	filters     []filter
}

// A filter is a parameter of a list that a flag of the same name sets.
type filter struct {
	name, usage string
	values      []string // nil: any
}

// listCommand returns the command that a listing describes.
func listCommand[T any](a app, o *datadir.Flags, l listing[T]) *cobra.Command {
	var p paging
	only := make([]string, len(l.filters))
	c := &cobra.Command{
		Use: "list", Short: l.short, Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			// The API takes the id of a key, and people know its name. The filter key is resolved by callAndPrint.
			q := apiCall[adminapi.List[T]]{method: "GET", path: l.path, show: l.show}
			var pairs []string
			for i, f := range l.filters {
				if f.name == "key" {
					q.key = only[i]
				} else {
					pairs = append(pairs, f.name, only[i])
				}
			}
			q.query = p.query(pairs...)
			return callAndPrint(c, a, o, p.asJSON, q)
		},
	}
	p.flags(c)
	for i, f := range l.filters {
		c.Flags().StringVar(&only[i], f.name, "", f.usage)
		if f.values != nil {
			cli.CompleteWords(c, f.name, f.values...)
		}
	}
	return c
}

// show prints one page as a table, whose last line says how to get the next one.
func (l listing[T]) show(out io.Writer, page *adminapi.List[T]) error {
	return cli.Table(out, l.head, page.Next, func(line func(...any)) {
		for i := range page.Data {
			line(l.cells(&page.Data[i])...)
		}
	})
}

// An itemAction describes a command that calls the admin API for one item, which its argument names.
type itemAction[T any] struct {
	use, short   string
	what         string // the argument, for error messages
	method       string
	path, suffix string // the path before and after the argument
	find         finder
	in           any
	show         func(io.Writer, *T) error
}

// itemCommand returns the command that an itemAction describes.
func itemCommand[T any](a app, o *datadir.Flags, d itemAction[T]) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: d.use, Short: d.short, Args: cli.ExactArgs(1, d.what),
		RunE: func(c *cobra.Command, args []string) error {
			return callAndPrint(c, a, o, asJSON, apiCall[T]{method: d.method, path: d.path, suffix: d.suffix,
				item: args[0], find: d.find, in: d.in, show: d.show})
		},
	}
	jsonFlag(c, &asJSON)
	return c
}
