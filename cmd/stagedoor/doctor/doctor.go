// Package doctor checks whether a gateway can run here and reach its providers. It checks the data directory, the
// limits of the system, the addresses, the certificate, the clock, and each provider with each of its keys, by requests
// that cost nothing. It changes nothing, and its results contain no secret. It does not look for mistakes in the
// configuration file, which package config finds.
//
// # Adding a check
//
// A check is a function that returns a Check and changes nothing. Say in Detail what was found, as a sentence for a
// person, and in Advice what to do about it, with the name of the setting. Failed is for what keeps the gateway from
// serving as it is configured. Where the system cannot say, the check is Skipped, because a doctor that guesses is
// not believed.
//
// # Errors
//
// There are none: a check that cannot be made is a Check with the status Skipped or Failed. Each check of a
// provider has a limit of time, and a provider is called with requests that are not charged, such as the list
// of its models.
package doctor

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"stagedoor/cmd/stagedoor/config"
)

// Status is the result of a check.
type Status string

// The statuses. A gateway with a warning runs; with a failure it does not, or not
// as configured.
const (
	OK      Status = "ok"
	Skipped Status = "skipped"
	Warning Status = "warning"
	Failed  Status = "failed"
)

// Check is one thing that was looked at.
type Check struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Detail string `json:"detail"`
	// Advice says how to mend the problem; "" if there is none.
	Advice string `json:"advice,omitempty"`
}

// Report is all of them. Its status is the worst there is.
type Report struct {
	Status Status  `json:"status"`
	Checks []Check `json:"checks"`
}

// Options say what to look at.
type Options struct {
	Config *config.Config
	// Offline leaves out the checks that connect to other machines.
	Offline bool
	// Running says that a gateway runs on the data directory: it has the
	// addresses and the store.
	Running bool
	// Memory limits the process, in bytes. The limits of Config are shares of it.
	Memory int64
}

// Examine makes all checks and returns their results.
func Examine(ctx context.Context, o Options) Report {
	var r Report
	r.add(Check{"configuration", OK, o.Config.Summary(), ""})
	r.add(directory(o.Config.Data, o.Running)...)
	r.add(system(o.Config)...)
	r.add(memory(o.Memory, int64(o.Config.Limits.BodyMiB)<<20))
	r.add(addresses(ctx, o.Config.Listen, o.Running)...)
	if o.Config.TLS != nil {
		r.add(certificate(o.Config.TLS.Cert, o.Config.TLS.Key))
	}
	if o.Offline {
		r.add(Check{"providers", Skipped, "not checked with --offline", ""},
			Check{"clock", Skipped, "not checked with --offline", ""})
		return r.judged()
	}
	found, dates := providers(ctx, o.Config.CatalogProviders())
	r.add(found...)
	r.add(clock(dates))
	return r.judged()
}

// add appends checks to the report.
func (r *Report) add(checks ...Check) { r.Checks = append(r.Checks, checks...) }

// judged returns the report with its status. A skipped check does not make it worse.
func (r Report) judged() Report {
	rank := map[Status]int{OK: 0, Skipped: 0, Warning: 1, Failed: 2}
	r.Status = OK
	for _, c := range r.Checks {
		if rank[c.Status] > rank[r.Status] {
			r.Status = c.Status
		}
	}
	return r
}

// Print writes the report as a table, with the advice below it. The error is that of out.
func (r *Report) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CHECK\tSTATUS\tDETAIL")
	var advice strings.Builder
	for _, c := range r.Checks {
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.Name, c.Status, c.Detail)
		if c.Advice != "" {
			fmt.Fprintf(&advice, "\n%s: %s", c.Name, c.Advice)
		}
	}
	if err := w.Flush(); err != nil || advice.Len() == 0 {
		return err
	}
	_, err := fmt.Fprintln(out, advice.String())
	return err
}
