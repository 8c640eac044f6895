package pages

import (
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"stagedoor/state"
)

// PathAudit is the address of the audit log.
const PathAudit = "/admin/audit"

// Audit is the page of the audit log, with a search.
type Audit struct {
	Viewer
	Query AuditSearch
	Rows  []AuditRow
	More  uint64 // the id of the last row if there are more, or 0
	Kept  string // says how long records stay; "": for ever
}

// AuditSearch has the parameters of the address as they were typed.
type AuditSearch struct {
	Actor, Action, Target, From, To string
	Before                          uint64 // 0 on the first page
}

func (a *Audit) frame() frame {
	return a.at(placeAudit, "audit.html", "Audit").with("", "requests.css", full)
}

// address returns the address of the same search at a path, from before a record on.
func (s AuditSearch) address(path string, before uint64) string {
	return Address(path, map[string]string{"actor": s.Actor, "action": s.Action, "target": s.Target,
		"from": s.From, "to": s.To, "before": place64(int64(before))})
}

// Export returns the address of all that the search finds, in a format.
func (a *Audit) Export(format string) string { return a.Query.address(PathAudit+"."+format, 0) }

// Newest returns the address of the first page of the search.
func (a *Audit) Newest() string { return a.Query.address(PathAudit, 0) }

// Older returns the address of the next page, or "".
func (a *Audit) Older() string {
	if a.More == 0 {
		return ""
	}
	return a.Query.address(PathAudit, a.More)
}

// Searched reports whether a condition is set.
func (a *Audit) Searched() bool { return a.Query != AuditSearch{} }

// AuditRow is a record in the table.
type AuditRow struct{ state.AuditRecord }

// auditActors are the words for actors without a name.
var auditActors = map[state.ActorKind]string{state.ActorUser: "a user", state.ActorAdminToken: "Admin token",
	state.ActorControlSocket: "A command", state.ActorCommand: "A command",
	state.ActorConfiguration: "Configuration file",
	state.ActorApp:           "an app", state.ActorVisitor: "Not signed in", state.ActorGateway: "The gateway"}

// Who returns the name of the actor.
func (r AuditRow) Who() string {
	if r.Actor.Name != "" {
		return r.Actor.Name
	}
	return auditActors[r.Actor.Kind]
}

// WhoPath returns the address of all changes by the actor.
func (r AuditRow) WhoPath() string {
	if r.Actor.Name != "" {
		return AuditSearch{Actor: r.Actor.Name}.address(PathAudit, 0)
	}
	return AuditSearch{Actor: string(r.Actor.Kind)}.address(PathAudit, 0)
}

// Source returns a text that says from where and how the change was made.
func (r AuditRow) Source() string {
	parts := []string{r.Actor.Via, r.Actor.Address}
	if r.Actor.Kind == state.ActorCommand {
		parts[1] = "on the data directory"
	}
	return strings.Trim(strings.Join(parts, ", "), ", ")
}

// auditVerbs are the past forms of the last words of actions.
var auditVerbs = map[string]string{"create": "created", "change": "changed", "remove": "removed", "pause": "paused",
	"resume": "resumed", "start": "started", "stop": "stopped", "credit": "credited", "adjust": "adjusted",
	"read": "read"}

// What returns the change in words, such as "key created".
func (r AuditRow) What() string {
	switch r.Action {
	case "sign_in":
		return "signed in"
	case "sign_out":
		return "signed out"
	case "sign_in.fail":
		return "sign-in failed"
	}
	kind, verb, _ := strings.Cut(r.Action, ".")
	if past := auditVerbs[verb]; past != "" {
		verb = past
	}
	return strings.TrimSpace(strings.ReplaceAll(kind, "_", " ") + " " + verb)
}

// Tone returns the class of the action's badge.
func (r AuditRow) Tone() string {
	switch {
	case strings.HasSuffix(r.Action, ".fail"), strings.HasSuffix(r.Action, ".remove"):
		return "bad"
	case strings.HasSuffix(r.Action, ".create"), strings.HasSuffix(r.Action, ".credit"):
		return "good"
	}
	return "line"
}

// Thing returns the name of the target, or its id.
func (r AuditRow) Thing() string {
	if r.Target.Name != "" {
		return r.Target.Name
	}
	return r.Target.ID
}

// ThingPath returns the address of the target's page, or "".
func (r AuditRow) ThingPath() string {
	switch {
	case r.Target.ID == "":
		return ""
	case r.Target.Kind == "user":
		return "/admin/users/" + url.PathEscape(r.Target.ID)
	case r.Target.Kind == "group":
		return "/admin/groups/" + url.PathEscape(r.Target.ID)
	}
	return ""
}

// Fields returns the changes as the table shows them.
func (r AuditRow) Fields() (all []AuditField) {
	for i := range r.Changes {
		c := &r.Changes[i]
		before, after := c.Texts()
		all = append(all, AuditField{Name: strings.ReplaceAll(c.Field, "_", " "),
			Before: short(auditValue(c.Field, before)), After: short(auditValue(c.Field, after))})
	}
	return all
}

// auditMoney are the fields that hold micro-dollars.
var auditMoney = map[string]bool{"budget": true, "credits": true, "amount": true}

// auditValue returns the value of a field as pages write it: money exactly and in dollars, times in the form of the
// other pages, and lists without brackets. The exports have it as the log does.
func auditValue(field, text string) string {
	if micros, err := strconv.ParseInt(text, 10, 64); err == nil && auditMoney[field] {
		if text, negative := strings.CutPrefix(Dollars(micros), "-"); negative {
			return "−$" + text
		}
		return "$" + Dollars(micros)
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return formatTime(at)
	}
	var list []string
	if strings.HasPrefix(text, "[") && json.Unmarshal([]byte(text), &list) == nil {
		return formatList(list)
	}
	return text
}

// Folded reports whether there are too many fields to show them all in a row.
func (r AuditRow) Folded() bool { return len(r.Changes) > 3 }

// AuditField is a field before and after a change; "": there was no value.
type AuditField struct{ Name, Before, After string }

// short cuts a value for the table. The exports have all of it.
func short(text string) string {
	const most = 200
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}
