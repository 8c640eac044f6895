package portal

import (
	"net/url"
	"strconv"
	"strings"

	"stagedoor/http/web/pages"
)

// perPage limits the entries of a list on one page.
const perPage = 50

// part cuts the part that the address asks for out of a list.
func part[T any](rc *requestContext, path string, all []T) ([]T, pages.Pager) {
	last := max((len(all)-1)/perPage, 0)
	page, err := strconv.Atoi(rc.query("page"))
	page = min(max(page-1, 0), last)
	if err != nil {
		page = 0
	}
	from, to := page*perPage, min((page+1)*perPage, len(all))
	p := pages.Pager{First: from + 1, Last: to, Total: len(all)}
	address := func(page int) string {
		q := url.Values{"page": {strconv.Itoa(page + 1)}}
		for _, name := range []string{"q", "sort", "group", "state"} {
			if value := rc.query(name); value != "" {
				q.Set(name, value)
			}
		}
		return path + "?" + q.Encode()
	}
	if page > 0 {
		p.Before = address(page - 1)
	}
	if page < last {
		p.After = address(page + 1)
	}
	return all[from:to], p
}

// matches tells whether any of the texts has the search in it, whatever the case.
func matches(search string, texts ...string) bool {
	search = strings.ToLower(strings.TrimSpace(search))
	for _, t := range texts {
		if strings.Contains(strings.ToLower(t), search) {
			return true
		}
	}
	return false
}
