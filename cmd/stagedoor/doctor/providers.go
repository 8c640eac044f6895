package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/sourcegraph/conc/pool"

	"stagedoor/providers/catalog"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/registry"
	"stagedoor/providers/upstream"
)

const (
	// patience limits the time of one request to a provider.
	patience = 10 * time.Second
	// atOnce limits the number of providers that are checked at a time, and of the keys of each.
	atOnce = 8
	// Bounds of Provider, which a page calls with an address and keys of its user's choice.
	mostKeys  = 16
	allOfThem = 20 * time.Second
)

// date pairs the time of a provider's clock with that of ours at the same moment.
type date struct{ theirs, ours time.Time }

// providers checks each provider with each of its keys, atOnce providers at a time. It also returns the times that
// their replies had, for clock.
func providers(ctx context.Context, specs []catalog.Provider) ([]Check, []date) {
	checks, dates := make([][]Check, len(specs)), make([][]date, len(specs))
	p := pool.New().WithMaxGoroutines(atOnce)
	for i := range specs {
		p.Go(func() { checks[i], dates[i] = provider(ctx, &specs[i]) })
	}
	p.Wait()
	var all []Check
	var read []date
	for i := range specs {
		all, read = append(all, checks[i]...), append(read, dates[i]...)
	}
	return all, read
}

// Provider checks one provider with each of its first 16 keys, for at most 20 seconds in all. A check of the status
// Skipped says how many keys were left out.
func Provider(ctx context.Context, spec *catalog.Provider) []Check {
	ctx, cancel := context.WithTimeout(ctx, allOfThem)
	defer cancel()
	some := *spec
	some.APIKeys = spec.APIKeys[:min(len(spec.APIKeys), mostKeys)]
	checks, _ := provider(ctx, &some)
	if left := len(spec.APIKeys) - len(some.APIKeys); left > 0 {
		checks = append(checks, Check{"provider " + spec.Name, Skipped,
			fmt.Sprintf("%d more keys; the command doctor asks with all", left), ""})
	}
	return checks
}

// provider checks one provider with each of its keys, some at once. It also returns the times that the replies had,
// for the check of this machine's clock. A provider without keys is asked once without one.
func provider(ctx context.Context, spec *catalog.Provider) (checks []Check, dates []date) {
	name := "provider " + spec.Name
	if spec.Shape == catalog.Sandbox {
		return []Check{{name, OK, "the embedded simulator", ""}}, nil
	}
	keys := spec.APIKeys
	if len(keys) == 0 {
		keys = []string{""}
	}
	checks = make([]Check, len(keys))
	at := make([]*date, len(keys))
	p := pool.New().WithMaxGoroutines(atOnce)
	for i, key := range keys {
		p.Go(func() { checks[i], at[i] = ask(ctx, spec, key) })
	}
	p.Wait()
	for i := range keys {
		checks[i].Name = name
		if len(keys) > 1 {
			checks[i].Name += fmt.Sprintf(", key %d", i+1)
		}
		if at[i] != nil {
			dates = append(dates, *at[i])
		}
	}
	return checks, dates
}

// ask sends one request as the gateway would, and judges the answer.
func ask(ctx context.Context, spec *catalog.Provider, key string) (Check, *date) {
	var probe shapes.Probe
	if d := registry.Describe(spec.Shape); d != nil {
		probe = d.Probe
	}
	client, err := upstream.New(upstream.Options{BaseURL: spec.BaseURL, Headers: spec.Headers,
		Timeouts: upstream.Timeouts{Connect: spec.Timeouts.Connect, FirstByte: patience, Total: patience}})
	if err != nil {
		return Check{Status: Failed, Detail: "its address cannot be used", Advice: "look at base_url"}, nil
	}
	defer client.Close()
	authorize := probe.Authorize
	if authorize == nil {
		authorize = func(http.Header, string) {} // it can be reached, not asked
	}
	began := time.Now()
	reply, err := client.Send(ctx,
		upstream.Request{Method: http.MethodGet, Path: probe.Path, Header: probe.Header.Clone()}, authorize, key)
	if err != nil {
		return Check{
			Status: Failed,
			Detail: "not reached: " + cause(err, key),
			Advice: "look at base_url, the network, proxies and firewalls between",
		}, nil
	}
	defer reply.Close()
	took := time.Since(began)
	var at *date
	if theirs, err := http.ParseTime(reply.Header.Get("Date")); err == nil {
		// The reply's time was most likely read in the middle of the exchange.
		at = &date{theirs, began.Add(took / 2)}
	}
	return judge(reply.Status, probe.Path != "" && key != "", took), at
}

// judge returns the result of a check of a provider and its key that was answered with this status.
func judge(status int, keyed bool, took time.Duration) Check {
	answer := fmt.Sprintf("answered %d within %s", status, took.Round(time.Millisecond))
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		// The same status means another thing for a request without a key: a local server may simply want one.
		if keyed {
			return Check{Status: Failed, Detail: answer + ": it refuses the key", Advice: "renew the key (api_keys)"}
		}
		return Check{
			Status: Warning,
			Detail: answer + ": it wants a key",
			Advice: "give it one (api_keys), unless this is a route of its own",
		}
	case status == http.StatusTooManyRequests:
		return Check{Status: Warning, Detail: answer + ": the key is at its limit"}
	case status >= 500:
		return Check{Status: Warning, Detail: answer + ": it has trouble of its own", Advice: "ask again later"}
	case status >= 300:
		return Check{
			Status: OK,
			Detail: answer + ": reached, but it does not list models, so whether the key is good is not known",
		}
	case !keyed:
		return Check{Status: OK, Detail: answer + ", without a key"}
	}
	return Check{Status: OK, Detail: answer + ", the key is good"}
}

// cause explains in words that are safe to show why a provider was not reached.
func cause(err error, key string) string {
	var failure *upstream.Failure
	text := err.Error()
	if errors.As(err, &failure) && failure.Err != nil {
		text = failure.Err.Message
		if failure.Err.Cause != nil {
			text = plain(failure.Err.Cause)
		}
	}
	if key != "" {
		// Some vendors take the key in the address, and errors of net/http quote addresses.
		text = strings.ReplaceAll(text, key, "...")
	}
	return text
}

// A clock that is off by more lets tokens and signatures fail.
const (
	slightlyOff = 5 * time.Second
	farOff      = time.Minute
)

// clock compares this machine's with those of the providers that said what time
// it is. The one that agrees most counts: a provider's may be wrong, too.
func clock(dates []date) Check {
	const name, advice = "clock", "set it, and keep it set (NTP): tokens, signed addresses and budgets go by it"
	if len(dates) == 0 {
		return Check{name, Skipped, "no provider said what time it is", ""}
	}
	least := dates[0].off()
	for _, d := range dates[1:] {
		if o := d.off(); o.Abs() < least.Abs() {
			least = o
		}
	}
	detail := fmt.Sprintf("%s off that of a provider", least.Round(time.Second).Abs())
	switch {
	case least.Abs() > farOff:
		return Check{name, Failed, detail, advice}
	case least.Abs() > slightlyOff:
		return Check{name, Warning, detail, advice}
	}
	return Check{name, OK, "agrees with that of a provider", ""}
}

// off returns the time by which our clock is ahead. A date has whole seconds.
func (d date) off() time.Duration {
	switch off := d.ours.Sub(d.theirs); {
	case off < 0:
		return off
	default:
		return max(off-time.Second, 0)
	}
}
