package adminapi

import (
	"net/http"
	"strconv"

	"stagedoor/providers/dialogue"
	"stagedoor/state"
)

// auditRoutes read the audit log. No route changes it.
var auditRoutes = []route{
	{method: "GET", path: "/audit", name: "listAudit", group: "audit",
		summary: "List who has changed what, newest first", out: List[Change]{},
		query: []param{{name: "actor", doc: "only changes by the user or app with this name, or by this kind of actor"},
			{name: "action", doc: "only this action, such as key.create, or those that it begins, such as key"},
			{name: "target", doc: "only changes of this kind of target, or whose target's id or name contains this"},
			{name: "from", doc: "only changes from this day or time on"},
			{name: "to", doc: "only changes before this day or time"}, limitParam, afterParam},
		status: http.StatusOK, serve: (*requestContext).listAudit},
}

// maxAuditSearch bounds a parameter of listAudit.
const maxAuditSearch = 300

// listAudit handles GET /audit.
func (c *requestContext) listAudit() (any, error) {
	q := state.AuditQuery{Actor: c.query.Get("actor"), Action: c.query.Get("action"), Target: c.query.Get("target")}
	for _, name := range []string{"actor", "action", "target"} {
		if len(c.query.Get(name)) > maxAuditSearch {
			return nil, dialogue.Invalid(name, "must have at most 300 bytes")
		}
	}
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	before, err := c.number("after")
	if err != nil {
		return nil, err
	}
	q.Before = uint64(before)
	if q.From, _, err = c.time("from"); err != nil {
		return nil, err
	}
	if q.To, _, err = c.time("to"); err != nil {
		return nil, err
	}
	l := List[Change]{Data: []Change{}}
	for r, err := range c.State.AuditLog(c.r.Context(), q) {
		if err != nil {
			return nil, err
		}
		if len(l.Data) == limit {
			l.Next = new(strconv.FormatInt(l.Data[limit-1].ID, 10))
			break
		}
		l.Data = append(l.Data, changeOf(&r))
	}
	return l, nil
}

// changeOf returns a record of the audit log as the API shows it.
func changeOf(r *state.AuditRecord) Change {
	c := Change{ID: int64(r.ID), Time: r.At, Action: r.Action, Target: ChangeTarget(r.Target), Changes: []FieldChange{},
		Actor: ChangeActor{Kind: string(r.Actor.Kind), Name: r.Actor.Name, Via: r.Actor.Via, Address: r.Actor.Address,
			Request: r.Actor.Request}}
	for _, f := range r.Changes {
		before, after := f.Values()
		c.Changes = append(c.Changes, FieldChange{f.Field, before, after})
	}
	return c
}
