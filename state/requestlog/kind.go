package requestlog

import "strings"

// Kind has all by which records have the same AppendKind, Owner and Slow, as a key of maps. To compare two of them
// takes a fraction of the time in which their JSON is written.
type Kind struct {
	names                         [16]string
	first                         Try
	more                          string // the JSON of further attempts
	status, attempts, tries       int
	stream, background, untouched bool
	slow                          bool
}

// Kind returns the kind of a record. It refers to the texts of the record.
func (r *Record) Kind() Kind {
	k := Kind{names: [...]string{r.Owner, r.Node, r.User, r.Group, r.Key, r.KeyName, r.App, r.Model, r.Provider,
		r.Upstream, r.Shape, r.Code, r.Error, r.Reason, r.Losses, r.Degraded},
		status: r.Status, attempts: r.Attempts, tries: len(r.Tries),
		stream: r.Stream, background: r.Background, untouched: r.Untouched, slow: r.Slow()}
	if len(r.Tries) > 0 {
		k.first = r.Tries[0]
	}
	if len(r.Tries) > 1 {
		var e entry
		e.tries(r.Tries[1:])
		k.more = string(e)
	}
	return k
}

// Clone returns the same kind with texts of its own, which keep nothing else in memory.
func (k Kind) Clone() Kind {
	for i, name := range k.names {
		k.names[i] = strings.Clone(name)
	}
	k.first.Provider, k.first.Model = strings.Clone(k.first.Provider), strings.Clone(k.first.Model)
	k.first.Failure = strings.Clone(k.first.Failure)
	return k
}
