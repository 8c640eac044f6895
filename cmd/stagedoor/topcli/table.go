package topcli

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"stagedoor/cmd/stagedoor/cli"
	httpflow "stagedoor/http/flow"
)

// table is one view of stagedoor top, with a summary above its rows. ids name the rows for the keys that act
// on a row, so that a row which moves between two snapshots stays chosen.
type table struct {
	name    string
	summary string
	head    []string
	// right are the columns of numbers.
	right map[int]bool
	rows  [][]string
	ids   []string // of the rows
	none  string   // in place of rows
}

// lines returns head and rows with aligned columns. Widths are in characters, so that names in any script
// line up.
func (s *table) lines() (head string, rows []string) {
	widths := make([]int, len(s.head))
	for _, row := range append([][]string{s.head}, s.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	line := func(row []string) string {
		var b strings.Builder
		for i, cell := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if s.right[i] {
				b.WriteString(space + cell)
			} else {
				b.WriteString(cell + space)
			}
		}
		return strings.TrimRight(b.String(), " ")
	}
	for _, row := range s.rows {
		rows = append(rows, line(row))
	}
	return line(s.head), rows
}

// plain returns the table as text.
func (s *table) plain() string {
	var b strings.Builder
	fmt.Fprintln(&b, s.summary)
	if len(s.rows) == 0 {
		fmt.Fprintln(&b, s.none)
		return b.String()
	}
	head, rows := s.lines()
	for _, line := range append([]string{head}, rows...) {
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

// requests returns the view of requests in flight. Text of clients and providers is made printable, so that it cannot
// send control sequences to the terminal.
func (r *snapshot) requests() table {
	l := r.Flow.Load
	s := table{name: "requests", none: "nothing is under way",
		summary: fmt.Sprintf(
			"%d under way: %d replying, %d waiting, %d queued, %d in progress, %d resting; %d tokens/s; %d ended, %d "+
				"of them failed",
			l.InFlight,
			l.Phases.Replying,
			l.Phases.Waiting,
			l.Phases.Queued,
			l.Phases.Making,
			l.Phases.Resting,
			l.TokensPerSecond,
			l.Ended,
			l.Failed,
		),
		head: []string{
			"REQUEST", "PHASE", "MODEL", "PROVIDER", "TOKENS", "PER S", "TIME", "KEY", "GATEWAY",
		}, right: map[int]bool{4: true, 5: true, 6: true}}
	for _, n := range l.Nodes {
		if !n.Answers {
			// Its requests are missing from the rows, which a reader must know before trusting the counts.
			s.summary += "; the gateway " + cli.Printable(n.Node) + " does not answer"
		}
	}
	if len(l.Nodes) == 0 {
		s.head = s.head[:len(s.head)-1] // there is one gateway
	}
	for i := range r.Flow.Data {
		q := &r.Flow.Data[i]
		phase := q.Phase
		if q.QueuePosition != nil {
			phase += " " + strconv.Itoa(*q.QueuePosition)
		}
		if q.Progress != nil && *q.Progress > 0 {
			phase += fmt.Sprintf(" %d %%", *q.Progress)
		}
		s.ids = append(s.ids, q.ID)
		s.rows = append(
			s.rows,
			[]string{
				cli.Printable(q.ID), phase, cli.Printable(cli.Shorten(q.Model, 32)), cli.Printable(q.Provider),
				number(q.OutputTokens), number(q.TokensPerSecond), formatDuration(q.DurationMs), cli.Printable(q.Key),
				cli.Printable(q.Node),
			}[:len(s.head)],
		)
	}
	return s
}

// providers returns the view of providers, with the state of their throttles.
func (r *snapshot) providers() table {
	s := table{name: "providers", summary: cli.Count(len(r.Providers), "provider"), none: "there are no providers",
		head: []string{
			"PROVIDER", "STATE", "IN FLIGHT", "QUEUED", "REQUESTS LEFT", "TOKENS LEFT", "KEYS REST", "A REQUEST TAKES",
			"LET THROUGH", "REFUSED",
		},
		right: map[int]bool{2: true, 3: true, 4: true, 5: true, 6: true, 7: true, 8: true, 9: true}}
	for _, node := range httpflow.SilentNodes(r.Providers) {
		s.summary += "; the gateway " + cli.Printable(node) + " does not answer"
	}
	for i := range r.Providers {
		p := &r.Providers[i]
		refused := int64(0)
		for _, c := range p.Refused {
			refused += c.Count
		}
		s.ids = append(s.ids, p.Name)
		s.rows = append(s.rows, []string{
			cli.Printable(p.Name), condition(p), ofLimit(p.InFlight, p.Places), number(int64(p.Queued)),
			ofLimit(p.Requests.Remaining, p.Requests.Limit), ofLimit(p.Tokens.Remaining, p.Tokens.Limit),
			ofLimit(p.Keys.Benched, p.Keys.Of), formatDuration(p.ServiceMs), number(p.Granted), number(refused),
		})
	}
	return s
}

// condition returns the most important fact about the state of a provider.
func condition(p *httpflow.Provider) string {
	switch {
	case !p.Answers:
		return "restarting"
	case p.Paused:
		return "paused"
	case p.Breaker == "open":
		return "breaker open, probe in " + formatDuration(p.ReopensMs)
	case p.Breaker == "half_open":
		return "breaker half open"
	case p.CoolMs > 0:
		return "rests " + formatDuration(p.CoolMs)
	}
	return "serving"
}

// actors returns the view of actors. Singletons are a tree by their parents, and kinds with many actors, such as
// requests, are one row each.
func (r *snapshot) actors() table {
	dead := int64(0)
	for _, c := range r.Actors.DeadLetters {
		dead += c.Count
	}
	s := table{name: "actors", none: "there are no actors",
		summary: fmt.Sprintf("%d goroutines at work, %d crashed; %d dead letters", r.Actors.Goroutines,
			r.Actors.Crashed, dead),
		head: []string{
			"ACTOR", "KIND", "LIVE", "MAILBOX", "RESTARTS", "LAST FAILURE",
		}, right: map[int]bool{2: true, 3: true, 4: true}}
	depth := make(map[string]int)
	listed := make(map[string]bool)
	for i := range r.Actors.Actors {
		a := &r.Actors.Actors[i]
		if a.Parent != "" {
			depth[a.ID] = depth[a.Parent] + 1
		}
		listed[a.Kind] = true
		s.ids = append(s.ids, a.ID)
		s.rows = append(s.rows, []string{
			strings.Repeat("  ", depth[a.ID]) + cli.Printable(a.Name), a.Kind, "1", number(a.Depth), number(a.Restarts),
			failureText(a.LastFailure),
		})
	}
	for i := range r.Actors.Kinds {
		k := &r.Actors.Kinds[i]
		if listed[k.Name] {
			continue
		}
		s.ids = append(s.ids, "kind "+k.Name)
		s.rows = append(s.rows, []string{
			"all of kind " + cli.Printable(k.Name), k.Name, number(k.Live), number(k.Depth), number(k.Restarted),
			failureText(k.LastFailure),
		})
	}
	return s
}

// failureText formats the last failure of an actor on one line, or "" if it has not failed.
func failureText(f *httpflow.ActorFailure) string {
	if f == nil {
		return ""
	}
	return cli.Printable(cli.Shorten(fmt.Sprintf("%s %s (%s)", f.At.Format(time.TimeOnly), f.Reason, f.Message), 80))
}

// number formats an integer for a cell.
func number(n int64) string { return strconv.FormatInt(n, 10) }

// ofLimit formats a number and its limit. A limit of 0 means that there is none. Without a limit, 0 is shown
// as a hyphen, since it says nothing.
func ofLimit(n, limit int) string {
	if limit == 0 {
		return cmp.Or(strings.TrimLeft(strconv.Itoa(n), "0"), "-")
	}
	return fmt.Sprintf("%d/%d", n, limit)
}

// formatDuration rounds a duration to about two digits.
func formatDuration(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case ms == 0:
		return "-"
	case d < time.Second:
		return d.String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
