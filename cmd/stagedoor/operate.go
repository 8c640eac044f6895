package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"stagedoor/actors/kit"
	"stagedoor/actors/ledger"
	"stagedoor/actors/tokens"
	"stagedoor/http/admin"
	"stagedoor/http/adminapi"
	"stagedoor/state"
)

// withAPI lets use work with the API of administration: of the gateway that runs
// on the data directory, or of this process on the directory itself.
func (a *app) withAPI(ctx context.Context, o *overrides, use func(*adminapi.Client) error) error {
	if err := a.existing(o); err != nil {
		return err
	}
	return a.withData(o, func(c *admin.Client) error { return use(c.API()) }, func(s *state.State) error {
		quiet := slog.New(slog.DiscardHandler)
		system := kit.NewSystem(kit.Options{Logger: quiet})
		registry, err := tokens.Start(tokens.Options{System: system, State: s, Now: time.Now})
		var money *ledger.Client
		if err == nil {
			money, err = ledger.New(system, s)
		}
		if err == nil {
			api := adminapi.New(adminapi.Options{Logger: quiet, State: s, Registry: registry, Ledger: money, Random: rand.Reader})
			err = use(adminapi.Direct(api.Handler()))
		}
		return errors.Join(err, system.Stop(ctx))
	})
}

// asking is one call of the API and how its reply is shown.
type asking[T any] struct {
	method, path string
	query        url.Values
	in           any
	show         func(io.Writer, *T) error
}

// ask makes the call. With asJSON the reply is printed as it is.
func ask[T any](c *cobra.Command, a *app, o *overrides, asJSON bool, q asking[T]) error {
	return a.withAPI(c.Context(), o, func(api *adminapi.Client) error {
		var out T
		if err := api.Do(c.Context(), q.method, q.path, q.query, q.in, &out); err != nil {
			return err
		}
		if asJSON {
			return printJSON(a.out, out)
		}
		return q.show(a.out, &out)
	})
}

// userID finds a user's id by name.
func userID(ctx context.Context, api *adminapi.Client, name string) (string, error) {
	var found adminapi.List[adminapi.User]
	if err := api.Do(ctx, "GET", "/users", url.Values{"username": {name}}, nil, &found); err != nil {
		return "", err
	}
	if len(found.Data) == 0 {
		return "", errors.New("there is no such user")
	}
	return strconv.FormatInt(found.Data[0].ID, 10), nil
}

// paging are the flags of commands that list.
type paging struct {
	limit  int
	after  string
	asJSON bool
}

func (p *paging) flags(c *cobra.Command) {
	c.Flags().IntVar(&p.limit, "limit", 100, "how many at most, 1 to 500")
	c.Flags().StringVar(&p.after, "after", "", "go on behind this: what the page before ended with")
	jsonFlag(c, &p.asJSON)
}

func jsonFlag(c *cobra.Command, asJSON *bool) {
	c.Flags().BoolVar(asJSON, "json", false, "print JSON; amounts are micro-dollars")
}

// query is the parameters that are not empty, in pairs of name and value.
func (p *paging) query(pairs ...string) url.Values {
	q := queryOf(pairs...)
	q.Set("limit", strconv.Itoa(p.limit))
	if p.after != "" {
		q.Set("after", p.after)
	}
	return q
}

func queryOf(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

// sheet prints a table, and where it goes on.
func sheet(out io.Writer, head string, next *string, rows func(line func(cells ...any))) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(strings.Fields(head), "\t"))
	rows(func(cells ...any) {
		for i, cell := range cells {
			if i > 0 {
				io.WriteString(w, "\t")
			}
			if text := fmt.Sprint(cell); text != "" {
				io.WriteString(w, printable(text))
			} else {
				io.WriteString(w, "-")
			}
		}
		io.WriteString(w, "\n")
	})
	if err := w.Flush(); err != nil || next == nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nThere is more: --after %s\n", *next)
	return err
}

// printable keeps what others chose from moving a terminal's cursor.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

func day(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Format(time.DateOnly)
}

// amount is a flag or argument in dollars, kept in micro-dollars. It never passes
// through a floating-point number.
type amount int64

const micro = 1_000_000

// Set implements pflag.Value.
func (m *amount) Set(text string) error {
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	const decimals = "000000"
	if whole == "" || len(fraction) > len(decimals) || strings.ContainsFunc(whole+fraction, func(r rune) bool { return r < '0' || r > '9' }) {
		return fmt.Errorf("%q is no amount: use dollars with at most six decimals, such as 12.50", text)
	}
	n, err := strconv.ParseInt(whole+fraction+decimals[len(fraction):], 10, 64)
	if err != nil {
		return fmt.Errorf("%q is too much", text)
	}
	if strings.HasPrefix(text, "-") {
		n = -n
	}
	*m = amount(n)
	return nil
}

// String implements pflag.Value.
func (m *amount) String() string { return inDollars(int64(*m)) }

// Type implements pflag.Value.
func (m *amount) Type() string { return "dollars" }

// inDollars writes micro-dollars with two to six decimals.
func inDollars(n int64) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	fraction := strings.TrimRight(fmt.Sprintf("%06d", n%micro), "0")
	for len(fraction) < 2 {
		fraction += "0"
	}
	return fmt.Sprintf("%s%d.%s", sign, n/micro, fraction)
}

// dollarArg reads an argument.
func dollarArg(text string) (int64, error) {
	var m amount
	if err := m.Set(text); err != nil {
		return 0, fmt.Errorf("%w: %w", errUsage, err)
	}
	return int64(m), nil
}

// args asks for exactly n arguments.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return fmt.Errorf("%s takes %s, got %s", c.CommandPath(), what, counted(len(args), "argument"))
		}
		return nil
	}
}
