package portal

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"stagedoor/http/web/pages"
)

// exportSpending sends what the page shows as CSV, with all names and a line for each step in which they used
// something. Unlike the page, the file has all rows. Times are in RFC 3339, costs in dollars, and steps
// without use have no line.
func (rc *requestContext) exportSpending(scope spendScope) {
	t := rc.timeOf()
	r, err := rc.report(&scope, &t)
	if err != nil {
		rc.busy(rc.w, rc.r, err)
		return
	}
	rows := slices.Concat(r.Rows, r.More)
	view := rc.options.State.View()
	rc.beginFile(mediaCSV, strings.ToLower(pageName(&scope))+".csv")
	out := newSpreadsheet(rc.w, "from", "to", r.By.Name, "name", "requests", "input_tokens", "output_tokens",
		"cost_usd")
	for _, s := range rows {
		rc.nameRow(view, r.By, s)
		for i, u := range s.Uses {
			if u == (pages.Use{}) {
				continue
			}
			from := r.From.Add(time.Duration(i) * r.Step)
			to := from.Add(r.Step)
			if to.After(r.To) {
				to = r.To // the last week is cut off
			}
			// The row of all further names has no id in the file, because its id is known to this program only.
			out.row(from.Format(time.RFC3339), to.Format(time.RFC3339), strings.Trim(s.ID, othersID), s.Name,
				number(u.Requests), number(u.Input), number(u.Output), pages.Dollars(u.Amount))
		}
	}
	_ = out.end() // the client has left
}

// mediaCSV is the media type of CSV. With the charset, spreadsheets do not guess that of their own system.
const mediaCSV = "text/csv; charset=utf-8"

// beginFile sets the headers of a reply that browsers store as a file of this name. Clients have chosen a part of the
// content, so that it is never shown as a page of the gateway.
func (rc *requestContext) beginFile(media, name string) {
	pages.Protect(rc.w.Header(), "'none'", false)
	rc.w.Header().Set("Content-Type", media)
	rc.w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
}

// pageName returns the title of the page.
func pageName(scope *spendScope) string {
	if scope.own {
		return "Usage"
	}
	return "Spend"
}

// number formats a number for a spreadsheet.
func number(n int64) string { return strconv.FormatInt(n, 10) }

// spreadsheet writes CSV for spreadsheets, which run texts that begin as formulas do. A quote before such a
// text makes spreadsheets show it as text.
type spreadsheet struct{ out *csv.Writer }

// newSpreadsheet begins a file with the names of its columns, if there are any.
func newSpreadsheet(w io.Writer, columns ...string) spreadsheet {
	s := spreadsheet{csv.NewWriter(w)}
	if len(columns) > 0 {
		s.row(columns...)
	}
	return s
}

// row writes one line. Clients choose many of the texts, such as ids and names of models.
func (s spreadsheet) row(cells ...string) {
	for i, cell := range cells {
		if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
			cells[i] = "'" + cell
		}
	}
	_ = s.out.Write(cells) // end returns the error
}

// end writes what is in memory and returns the first error.
func (s spreadsheet) end() error {
	s.out.Flush()
	return s.out.Error()
}
