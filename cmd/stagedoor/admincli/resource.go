package admincli

import (
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/adminapi"
)

// A listing is what a command that lists things of the admin API says of them.
type listing[T any] struct {
	short, path string
	head        string // names of the columns
	cells       func(*T) []any
	filters     []filter
}

// A filter is a parameter of a list and the flag for it.
type filter struct {
	name, usage string
	values      []string // nil: any
}

// list is the command of a listing.
func list[T any](a app, o *datadir.Flags, l listing[T]) *cobra.Command {
	var p paging
	only := make([]string, len(l.filters))
	c := &cobra.Command{
		Use: "list", Short: l.short, Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var pairs []string
			for i, f := range l.filters {
				pairs = append(pairs, f.name, only[i])
			}
			return ask(c, a, o, p.asJSON, asking[adminapi.List[T]]{method: "GET", path: l.path, query: p.query(pairs...), show: l.show})
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

func (l listing[T]) show(out io.Writer, page *adminapi.List[T]) error {
	return cli.Table(out, l.head, page.Next, func(line func(...any)) {
		for i := range page.Data {
			line(l.cells(&page.Data[i])...)
		}
	})
}

// A deed is what a command that does something about one thing says of it.
type deed[T any] struct {
	use, short   string
	what         string // it is told by
	method       string
	path, behind string // before and behind what it is told by
	in           any
	show         func(io.Writer, *T) error
}

// do is the command of a deed.
func do[T any](a app, o *datadir.Flags, d deed[T]) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: d.use, Short: d.short, Args: cli.ExactArgs(1, d.what),
		RunE: func(c *cobra.Command, args []string) error {
			return ask(c, a, o, asJSON, asking[T]{method: d.method, path: d.path + url.PathEscape(args[0]) + d.behind, in: d.in, show: d.show})
		},
	}
	jsonFlag(c, &asJSON)
	return c
}
