package portal

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"stagedoor/http/web/pages"
	"stagedoor/state"
)

// auditSearch reads what the address asks for. What makes no sense is left out.
func (rc *requestContext) auditSearch() (s pages.AuditSearch, q state.AuditQuery) {
	f := fields{form: rc.r.URL.Query()}
	q.Actor, q.Action, q.Target = f.text("actor"), f.text("action"), f.text("target")
	s = pages.AuditSearch{Actor: q.Actor, Action: q.Action, Target: q.Target}
	if day, err := time.Parse(time.DateOnly, f.text("from")); err == nil {
		s.From, q.From = f.text("from"), day
	}
	if day, err := time.Parse(time.DateOnly, f.text("to")); err == nil {
		s.To, q.To = f.text("to"), day.AddDate(0, 0, 1)
	}
	q.Before, _ = strconv.ParseUint(f.text("before"), 10, 64)
	s.Before = q.Before
	return s, q
}

// changesPerPage limits the rows of a page of the audit log, each of which has a list of fields before and after.
const changesPerPage = 25

// audit shows a page of the audit log.
func (rc *requestContext) audit() {
	search, q := rc.auditSearch()
	view := &pages.Audit{Viewer: rc.viewer(), Query: search}
	if keep := rc.options.State.AuditKept(); keep > 0 {
		view.Kept = pages.Days(keep)
	}
	ctx, cancel := context.WithTimeout(rc.r.Context(), searchTime)
	defer cancel()
	status := http.StatusOK
	for r, err := range rc.options.State.AuditLog(ctx, q) {
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			view.Problem = "The search took too long. Choose a shorter time."
			status = http.StatusServiceUnavailable
		case err != nil:
			rc.busy(rc.w, rc.r, err)
			return
		case len(view.Rows) == changesPerPage:
			view.More = view.Rows[changesPerPage-1].ID
		default:
			view.Rows = append(view.Rows, pages.AuditRow{AuditRecord: r})
			continue
		}
		break
	}
	rc.show(status, view)
}

// exportAudit sends all that the address asks for, one record at a time.
func (rc *requestContext) exportAudit(media, file string, newWriter func(io.Writer) recordWriter) {
	_, q := rc.auditSearch()
	var out recordWriter
	begin := func() {
		rc.beginFile(media, file)
		out = newWriter(rc.w)
	}
	// The headers wait for the first record, so that a log that cannot be read is still answered with an error page.
	for r, err := range rc.options.State.AuditLog(rc.r.Context(), q) {
		if err != nil && out == nil {
			rc.busy(rc.w, rc.r, err)
			return
		}
		if err != nil {
			if rc.r.Context().Err() == nil {
				rc.options.Logger.Warn("an export of the audit log broke off", "cause", err)
			}
			panic(http.ErrAbortHandler) // so that the file does not look complete
		}
		if out == nil {
			begin()
		}
		if out.write(&r) != nil {
			return // the client has left
		}
	}
	if out == nil {
		begin()
	}
	_ = out.end() // the client has left
}

// recordWriter writes the records of an export.
type recordWriter interface {
	write(r *state.AuditRecord) error
	end() error
}

// lineWriter writes JSON lines.
type lineWriter struct{ *json.Encoder }

// newLineWriter returns a writer of JSON, one record on a line.
func newLineWriter(w io.Writer) recordWriter { return lineWriter{json.NewEncoder(w)} }

func (l lineWriter) write(r *state.AuditRecord) error { return l.Encode(r) }
func (l lineWriter) end() error                       { return nil }

// rowWriter writes CSV, with the changed fields as JSON objects.
type rowWriter struct{ spreadsheet }

// newRowWriter returns a writer of CSV.
func newRowWriter(w io.Writer) recordWriter {
	return rowWriter{newSpreadsheet(w, "id", "time", "actor_kind", "actor", "via", "address", "request_id", "action",
		"target_kind", "target_id", "target_name", "before", "after")}
}

// write writes one record. The changed fields are JSON in two cells, since every kind of target has other fields.
func (o rowWriter) write(r *state.AuditRecord) error {
	before, after := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for _, c := range r.Changes {
		before[c.Field], after[c.Field] = c.Before, c.After
	}
	was, err := json.Marshal(before)
	if err != nil {
		return err
	}
	is, err := json.Marshal(after)
	if err != nil {
		return err
	}
	o.row(strconv.FormatUint(r.ID, 10), r.At.UTC().Format(time.RFC3339Nano), string(r.Actor.Kind), r.Actor.Name,
		r.Actor.Via, r.Actor.Address, r.Actor.Request, r.Action, r.Target.Kind, r.Target.ID, r.Target.Name, string(was),
		string(is))
	return o.out.Error()
}
