package admincli

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"stagedoor/actors/kit"
	"stagedoor/actors/ledger"
	"stagedoor/actors/tokens"
	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/admin"
	"stagedoor/http/adminapi"
	"stagedoor/http/auth"
	"stagedoor/state"
)

// withAPI calls use with a client of the admin API. The gateway that runs on the data directory serves the API. If no
// gateway does, this process serves it on the directory itself.
func (a app) withAPI(ctx context.Context, o *datadir.Flags, use func(*adminapi.Client) error) error {
	if err := o.RequireExisting(); err != nil {
		return err
	}
	return a.withNewAPI(ctx, o, use)
}

// withNewAPI calls use with a client of the admin API, as withAPI does, and makes the data directory if there is none.
// Without a running gateway it serves the API in this process. That costs a second set of actors for a moment, and it
// means that every operation is written once and that a command does exactly what the API does.
func (a app) withNewAPI(ctx context.Context, o *datadir.Flags, use func(*adminapi.Client) error) error {
	return o.Use(func(c *admin.Client) error { return use(c.API()) }, func(s *state.State) error {
		// The API needs actors for accounts and sign-ins. They run in a small system of their own, without a log,
		// because the output of the command is for a person or a script.
		quiet := slog.New(slog.DiscardHandler)
		system := kit.NewSystem(kit.Options{Logger: quiet})
		registry, err := tokens.Start(tokens.Options{System: system, State: s, Now: time.Now})
		var money *ledger.Client
		if err == nil {
			money, err = ledger.New(system, s)
		}
		if err == nil {
			api := adminapi.New(
				adminapi.Options{Logger: quiet, State: s, Registry: registry, Ledger: money, Random: rand.Reader},
			)
			err = use(adminapi.NewInProcessClient(
				auth.Acting(state.ActorCommand, auth.ViaCommand, api.Handler().ServeHTTP)))
		}
		return errors.Join(err, system.Stop(ctx))
	})
}

// apiCall is one call of the admin API, with the function that prints its reply.
type apiCall[T any] struct {
	method, path string
	query        url.Values
	in           any
	show         func(io.Writer, *T) error
	// find and item say which item the call is about: the id that find returns for item is put between path and suffix.
	find         finder
	item, suffix string
	// key names a key, and the parameter key of the query becomes its id.
	key string
}

// resolve puts ids in place of what the command line names.
// People type names and the API takes ids, because a name can be given to something else later.
func (q *apiCall[T]) resolve(ctx context.Context, api *adminapi.Client) error {
	if q.find != nil {
		id, err := q.find(ctx, api, q.item)
		if err != nil {
			return err
		}
		q.path += url.PathEscape(id) + q.suffix
	}
	if q.key != "" {
		id, err := FindKey(ctx, api, q.key)
		if err != nil {
			return err
		}
		q.query.Set("key", id)
	}
	return nil
}

// callAndPrint makes the call. If asJSON is set, it prints the reply as JSON instead of calling show. The error is
// that of the API, of a name that fits no item, or of writing to the output.
func callAndPrint[T any](c *cobra.Command, a app, o *datadir.Flags, asJSON bool, q apiCall[T]) error {
	return a.withAPI(c.Context(), o, func(api *adminapi.Client) error {
		if err := q.resolve(c.Context(), api); err != nil {
			return err
		}
		var out T
		if err := api.Do(c.Context(), q.method, q.path, q.query, q.in, &out); err != nil {
			return err
		}
		if asJSON {
			return cli.PrintJSON(a.Out, out)
		}
		return q.show(a.Out, &out)
	})
}

// paging are the flags of commands that list.
type paging struct {
	limit  int
	after  string
	asJSON bool
}

// flags adds the flags of a page to a command that lists.
func (p *paging) flags(c *cobra.Command) {
	c.Flags().IntVar(&p.limit, "limit", 100, "largest number of rows, 1 to 500")
	c.Flags().StringVar(&p.after, "after", "", "continue after the cursor that the previous page ends with")
	jsonFlag(c, &p.asJSON)
}

// jsonFlag adds --json to a command whose reply is printed as the API sent it.
func jsonFlag(c *cobra.Command, asJSON *bool) {
	c.Flags().BoolVar(asJSON, "json", false, "print JSON; amounts are micro-dollars")
}

// query returns the parameters of a page. pairs are names and values; empty values are left out.
func (p *paging) query(pairs ...string) url.Values {
	q := queryOf(pairs...)
	q.Set("limit", strconv.Itoa(p.limit))
	if p.after != "" {
		q.Set("after", p.after)
	}
	return q
}

// queryOf returns the parameters for pairs of names and values. It leaves out those with an empty value, so that a
// flag which was not given is not sent as a filter for the empty text.
func queryOf(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

// formatDay returns the day of a time in the time's own zone, or "" for nil, which tables print as "-".
func formatDay(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Format(time.DateOnly)
}
