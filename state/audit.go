package state

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"stagedoor/state/journal"
)

// The audit log says who has changed what, and how. A table whose declaration has an Audit is audited: when a command
// has run, the rows that it has changed are compared with what they were before it, and one record for each row that
// differs is written in the commit of the change. So no code can change such a row without a record, and a handler has
// nothing to remember. What is no row of a table is recorded by Tx.Audit.
//
// Records are numbered without gaps, are never changed, and leave in their order when they are too old or too many
// (KeepAudit). They are not kept in memory.

// ActorKind says what an actor is.
type ActorKind string

// The kinds of actors.
const (
	ActorUser          ActorKind = "user"           // a person who has signed in, or a program with the person's token
	ActorAdminToken    ActorKind = "admin_token"    // a program with the token of the administration API
	ActorControlSocket ActorKind = "control_socket" // a command that talks to the running gateway
	ActorCommand       ActorKind = "command"        // a command that works on the data directory itself
	ActorConfiguration ActorKind = "configuration"  // the configuration file, which was read again
	ActorApp           ActorKind = "app"            // an OAuth app
	ActorVisitor       ActorKind = "visitor"        // a client that has not signed in
	ActorGateway       ActorKind = "gateway"        // the gateway itself
)

// Actor is the party that causes a change, and the way by which its request came. Put it on a context with WithActor,
// and the commands that run with that context are recorded under it.
type Actor struct {
	Kind    ActorKind `json:"kind"`
	Name    string    `json:"name,omitempty"`       // of the user or the app
	Via     string    `json:"via,omitempty"`        // page, api, oauth or command
	Address string    `json:"address,omitempty"`    // of the client
	Request string    `json:"request_id,omitempty"` // X-Request-Id of the reply
}

// As returns the actor with another kind and name, for a client that has just said who it is.
func (a Actor) As(kind ActorKind, name string) Actor {
	a.Kind, a.Name = kind, name
	return a
}

type actorKey struct{}

// WithActor returns a context whose commands are recorded under an actor.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, &a)
}

// ActorOf returns the actor of a context. Without one it is the gateway itself.
func ActorOf(ctx context.Context) Actor {
	if a := actorIn(ctx); a != nil {
		return *a
	}
	return Actor{Kind: ActorGateway}
}

// actorIn returns the actor that the context has, or nil.
func actorIn(ctx context.Context) *Actor {
	a, _ := ctx.Value(actorKey{}).(*Actor)
	return a
}

// ActAs records the running command under an actor. This includes what the command has done before the call, except
// events that name an actor of their own. Use it in commands that are submitted without a context, and in those that
// find out who the client is.
func (tx *Tx) ActAs(a Actor) { tx.actor = &a }

// Actor returns the actor under which the running command is recorded. It is the gateway itself, unless the context of
// the command has an actor or the command has called ActAs.
func (tx *Tx) Actor() Actor {
	if tx.actor != nil {
		return *tx.actor
	}
	return Actor{Kind: ActorGateway}
}

// Target names the thing that was changed.
type Target struct {
	Kind string `json:"kind"`
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

// Fields are named values of a record as the audit log shows them. A secret, a hash or a text of a prompt is never one
// of them; Hidden stands for a value whose change must be seen.
type Fields map[string]any

// Hidden is a value of Fields that is compared and not shown.
type Hidden string

// Audit describes the records of a table to the audit log.
type Audit[R any] struct {
	// Kind is that of the target. The actions are Kind with .create, .change and .remove behind it, unless Create or
	// Remove name another one.
	Kind           string
	Create, Remove string
	// Describe returns what a record is called and what is compared. Changes of what is not in Fields are not
	// recorded. The id of the target is that of the record if Describe returns none.
	Describe func(v View, r *R) (Target, Fields)
}

// AuditEvent is something that Tx.Audit records.
type AuditEvent struct {
	Actor         *Actor // nil: that of the command
	Action        string
	Target        Target
	Before, After Fields
}

// unaudited is something that the running command has done and that is not recorded yet: an event, or a change of a
// row.
type unaudited struct {
	event         AuditEvent
	table         auditor // nil: an event
	before, after any
}

// auditor is a Table with an Audit.
type auditor interface {
	describeChange(v View, before, after any) AuditEvent
}

// Audit records an event in the commit of the running command, and not at all if that is refused.
func (tx *Tx) Audit(e AuditEvent) { tx.audit = append(tx.audit, unaudited{event: e}) }

// RecordAudit records an event that changes nothing in the state. It returns once the event is durable, because an
// action that is not recorded must not look as if it were.
func (s *State) RecordAudit(ctx context.Context, e AuditEvent) error {
	return Run(ctx, s, func(tx *Tx) error {
		tx.Audit(e)
		return nil
	})
}

// auditRow notes that the running command has changed a row of t. id names the row: a second change of it is part of
// the first, so that the audit log has one record for each row and command.
func (tx *Tx) auditRow(t auditor, id record, c change) {
	if i, again := tx.audited[id]; again {
		tx.audit[i].after = c.after
		return
	}
	if tx.audited == nil {
		tx.audited = map[record]int{}
	}
	tx.audited[id] = len(tx.audit)
	tx.audit = append(tx.audit, unaudited{table: t, before: c.before, after: c.after})
}

// describeChange returns the event of a change that a table audits. The target is described by the
// record after the change, or by the one before if it was removed. A row that one command has made and removed has an
// event without fields, which writeAudit leaves out.
func (t *Table[R]) describeChange(v View, before, after any) AuditEvent {
	var e AuditEvent
	var r *R
	a := t.Audit
	for _, side := range []struct {
		row    *R
		fields *Fields
	}{{recordIn[R](before), &e.Before}, {recordIn[R](after), &e.After}} {
		if side.row != nil {
			r = side.row
			e.Target, *side.fields = a.Describe(v, r)
		}
	}
	switch {
	case r == nil: // made and removed by one command
		return e
	case before == nil:
		e.Action = cmp.Or(a.Create, a.Kind+".create")
	case after == nil:
		e.Action = cmp.Or(a.Remove, a.Kind+".remove")
	default:
		e.Action = a.Kind + ".change"
	}
	e.Target.Kind = a.Kind
	e.Target.ID = cmp.Or(e.Target.ID, t.ID(r))
	return e
}

// Facts of the audit log: the numbers of its first and of its last record.
const (
	auditFirst = "audit/first"
	auditLast  = "audit/last"
)

// writeAudit adds the records of what the running command has done to its batch. A change of a row in none of its
// Fields gets no record.
func (tx *Tx) writeAudit() error {
	last := tx.View().NumberFact(auditLast)
	n := last
	for i := range tx.audit {
		u := &tx.audit[i]
		e := u.event
		if u.table != nil {
			e = u.table.describeChange(tx.View(), u.before, u.after)
		}
		changes, err := compareFields(e.Before, e.After)
		if err != nil {
			return fmt.Errorf("%w: audit %s: %w", ErrInvalid, e.Action, err)
		}
		if u.table != nil && len(changes) == 0 {
			continue
		}
		r := AuditRecord{ID: n + 1, At: tx.now, Actor: tx.Actor(), Action: e.Action, Target: e.Target, Changes: changes}
		if e.Actor != nil {
			r.Actor = *e.Actor
		}
		r.clip()
		value, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("%w: audit %s: %w", ErrInvalid, e.Action, err)
		}
		n++
		tx.Op(journal.Op{Kind: journal.Put, Table: journal.Audit, Key: SequenceKey(n), Value: value, New: true})
	}
	if n == last {
		return nil
	}
	return tx.PutNumberFact(auditLast, n)
}

// Bounds of the texts of a record, in bytes. The name of a key, token or app has at most 100 characters of at most 4
// bytes, so it is never cut.
const (
	maxAuditName  = 400
	maxAuditValue = 4 << 10
)

// AuditRecord is one entry of the audit log.
type AuditRecord struct {
	ID      uint64        `json:"id"` // 1, 2, ... without gaps
	At      time.Time     `json:"time"`
	Actor   Actor         `json:"actor"`
	Action  string        `json:"action"`
	Target  Target        `json:"target"`
	Changes []AuditChange `json:"changes,omitempty"` // by field
}

// AuditChange is the value of a field before and after a change, as JSON. A value that there was not, or is not any
// more, is null. A hidden value is the text "hidden".
type AuditChange struct {
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// clip cuts names and ids that come from outside to maxAuditName bytes. It leaves no part of a character.
func (r *AuditRecord) clip() {
	for _, text := range []*string{&r.Actor.Name, &r.Actor.Address, &r.Actor.Request, &r.Target.ID, &r.Target.Name} {
		if len(*text) > maxAuditName {
			*text = strings.ToValidUTF8((*text)[:maxAuditName], "") + "…"
		}
	}
}

// compareFields returns the fields that differ, in the order of their names. Empty values of a record that was made or
// removed are left out.
func compareFields(before, after Fields) ([]AuditChange, error) {
	names := slices.Collect(maps.Keys(before))
	for name := range after {
		if _, both := before[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	whole := before == nil || after == nil
	var changes []AuditChange
	for _, name := range names {
		b, err := auditValue(before[name], whole)
		if err != nil {
			return nil, err
		}
		a, err := auditValue(after[name], whole)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(a, b) || isHidden(before[name]) && before[name] != after[name] {
			changes = append(changes, AuditChange{name, b, a})
		}
	}
	return changes, nil
}

// isHidden reports whether a value is one that the log must not show.
func isHidden(v any) bool {
	_, hidden := v.(Hidden)
	return hidden
}

// auditValue returns a value as the log shows it, as JSON. Times have no fractions of a second, a Hidden value is the
// text "hidden", and a text of more than maxAuditValue bytes, or the JSON of another value, is cut to that and says how
// long it was. The zero time is null. whole is set for the fields of a record that was made or removed, of which each
// empty value is null.
func auditValue(v any, whole bool) (json.RawMessage, error) {
	if h, hidden := v.(Hidden); hidden {
		if h == "" {
			return json.RawMessage("null"), nil
		}
		return json.RawMessage(`"hidden"`), nil
	}
	if t, ok := v.(time.Time); ok {
		if v = t.Truncate(time.Second); t.IsZero() {
			v = nil
		}
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if whole && slices.Contains([]string{`""`, "0", "false"}, string(text)) {
		return json.RawMessage("null"), nil
	}
	shown, isText := v.(string)
	if !isText {
		shown = string(text)
	}
	if len(shown) > maxAuditValue {
		cut := strings.ToValidUTF8(shown[:maxAuditValue], "")
		return json.Marshal(fmt.Sprintf("%s… (%d bytes)", cut, len(shown)))
	}
	return text, nil
}
