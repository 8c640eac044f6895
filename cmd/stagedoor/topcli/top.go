// Package topcli implements "stagedoor top", which shows the requests, providers and actors of a running gateway on a
// terminal or prints them once. It reads them from the admin API and changes them only when a key is pressed.
//
// The screen (screen.go) is a program of bubbletea: it asks for a snapshot every second, draws tables of it
// (table.go) and turns keys into calls. A snapshot that fails leaves the last one on the screen, with the failure
// below it, because the figures of a moment ago are better than none.
//
// # Usage
//
// With a terminal as its output, the command runs until q is pressed. Otherwise, or with --once, it
// prints one snapshot, so that it can be used in scripts. A key that changes something, such as the
// end of a request, asks for a confirmation first.
//
// # Concurrency
//
// bubbletea calls the methods of the screen on one goroutine. A snapshot is read on another one, which sends
// its result as a message, so a gateway that answers slowly does not block keys.
package topcli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/adminapi"
	httpflow "stagedoor/http/flow"
)

// topFlags are the flags of stagedoor top.
type topFlags struct {
	url, token   string
	once, asJSON bool
	limit        int
}

// app holds what all commands of this package share.
type app struct{ *cli.App }

// Command returns "stagedoor top".
func Command(shared *cli.App) *cobra.Command {
	a := app{shared}
	var o *datadir.Flags
	var f topFlags
	c := &cobra.Command{
		Use: "top", Short: "Watch requests, providers and actors of a running gateway", Args: cli.NoArgs,
		Long: `Watch a running gateway: the requests in flight with their phases, the providers with
their limits and queues, and the tree of actors. The command finds the gateway by its
data directory, or by --url and a token of the admin API.

Keys:
  1 2 3, tab     requests, providers, actors
  up, down       choose a line
  s              sort requests by oldest, newest or most tokens
  e              end the chosen request; y confirms
  p              pause or resume the chosen provider
  q              quit

If the output is not a terminal, and with --once or --json, the command prints the
current state and exits.`,
		Example: `  stagedoor top --data /var/lib/stagedoor
  STAGEDOOR_TOKEN=... stagedoor top --url https://gateway.example.com
  stagedoor top --json | jq .flow.load`,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withGateway(o, &f,
				func(api *adminapi.Client) error { return a.top(c.Context(), client{api, f.limit}, &f) })
		},
	}
	o = datadir.AddFlags(c, a.App)
	c.Flags().StringVar(&f.url, "url", "", "`address` of a gateway, in place of a data directory")
	c.Flags().StringVar(&f.token, "token", "", "token of the admin API for --url; the environment variable is safer")
	cli.FromEnvironment(c.Flags(), "token")
	c.Flags().BoolVar(&f.once, "once", false, "print the current state and exit")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON once and exit")
	c.Flags().IntVar(&f.limit, "limit", 100, "largest number of requests, 1 to 500")
	return c
}

// withGateway calls use with a client of the running gateway that the flags name.
func (a app) withGateway(o *datadir.Flags, f *topFlags, use func(*adminapi.Client) error) error {
	if f.limit < 1 || f.limit > httpflow.MaxLimit {
		return fmt.Errorf("%w: --limit must be between 1 and %d", cli.ErrUsage, httpflow.MaxLimit)
	}
	if f.url != "" {
		base, err := url.Parse(f.url)
		if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
			return fmt.Errorf("%w: --url %q: expected an address such as https://gateway.example.com", cli.ErrUsage,
				f.url)
		}
		return use(adminapi.NewClient(remote{base, f.token}))
	}
	if err := o.RequireExisting(); err != nil {
		return err
	}
	data, client, err := o.Dial()
	if err != nil {
		return err
	}
	if client == nil {
		return fmt.Errorf("no gateway runs on %s", data)
	}
	return use(client.API())
}

// remote sends requests of the admin API to a gateway over the network.
type remote struct {
	base  *url.URL
	token string
}

// RoundTrip implements http.RoundTripper.
func (t remote) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = t.base.Scheme, t.base.Host, t.base.Host
	// The address may have a path of its own, where a proxy serves the gateway below one.
	r.URL.Path, r.URL.RawPath = path.Join("/", t.base.Path, r.URL.Path), ""
	r.Header.Set("Authorization", "Bearer "+t.token)
	return http.DefaultTransport.RoundTrip(r)
}

// client reads and changes a running gateway.
type client struct {
	api   *adminapi.Client
	limit int
}

// snapshot is the state of a gateway at one moment.
type snapshot struct {
	Flow      httpflow.Active     `json:"flow"`
	Providers []httpflow.Provider `json:"providers"`
	Actors    httpflow.Actors     `json:"actors"`
}

// read returns a snapshot with its requests in the given sort order of package flow.
func (g client) read(ctx context.Context, sort string) (snapshot, error) {
	var r snapshot
	var providers adminapi.List[httpflow.Provider]
	if err := g.api.Do(ctx, http.MethodGet, "/flow", url.Values{"limit": {strconv.Itoa(g.limit)}, "sort": {sort}}, nil, &r.Flow); err != nil {
		return r, err
	}
	if err := g.api.Do(ctx, http.MethodGet, "/providers", nil, nil, &providers); err != nil {
		return r, err
	}
	r.Providers = providers.Data
	return r, g.api.Do(ctx, http.MethodGet, "/actors", nil, nil, &r.Actors)
}

// endRequest ends a request that is in flight.
func (g client) endRequest(ctx context.Context, id string) error {
	var out httpflow.Detail
	return g.api.Do(ctx, http.MethodDelete, "/flow/requests/"+url.PathEscape(id), nil, nil, &out)
}

// setPaused pauses or resumes a provider.
func (g client) setPaused(ctx context.Context, name string, paused bool) error {
	word := "resume"
	if paused {
		word = "pause"
	}
	var out httpflow.Provider
	return g.api.Do(ctx, http.MethodPost, "/providers/"+url.PathEscape(name)+"/"+word, nil, nil, &out)
}

// top shows a gateway on a terminal. If the output is not a terminal, it prints one snapshot.
func (a app) top(ctx context.Context, g client, f *topFlags) error {
	file, ok := a.Out.(*os.File)
	if ok && !f.once && !f.asJSON && term.IsTerminal(file.Fd()) && term.IsTerminal(os.Stdin.Fd()) &&
		os.Getenv("TERM") != "dumb" {
		return showScreen(ctx, file, g)
	}
	r, err := g.read(ctx, httpflow.SortAge)
	switch {
	case err != nil:
		return err
	case f.asJSON:
		return cli.PrintJSON(a.Out, r)
	}
	for _, sheet := range []table{r.requests(), r.providers(), r.actors()} {
		if _, err := fmt.Fprintln(a.Out, sheet.plain()); err != nil {
			return err
		}
	}
	return nil
}
