package portal

import (
	"slices"
	"strconv"
	"strings"

	"stagedoor/http/web/pages"
)

// perPage limits the entries of a list on one page.
const perPage = 50

// named returns a handler that serve handles with what the path names by its number, which find finds. Where there is
// none, the page says so.
func named[T any](find func(*requestContext, int64) (T, bool), serve func(*requestContext, T)) func(*requestContext) {
	return func(rc *requestContext) {
		id, err := strconv.ParseInt(rc.r.PathValue("id"), 10, 64)
		if err == nil {
			if found, ok := find(rc, id); ok {
				serve(rc, found)
				return
			}
		}
		rc.missing()
	}
}

// part returns the part of a list that the parameter page asks for, and the links to the parts beside it. A page that
// does not exist is the nearest one that does. The links keep the search, the order and the filters of the address.
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
		return pages.Address(path, map[string]string{"page": strconv.Itoa(page + 1), "q": rc.query("q"),
			"sort": rc.query("sort"), "group": rc.query("group"), "state": rc.query("state")})
	}
	if page > 0 {
		p.Before = address(page - 1)
	}
	if page < last {
		p.After = address(page + 1)
	}
	return all[from:to], p
}

// matches reports whether any of the texts contains the search, without regard to case. An empty search matches.
func matches(search string, texts ...string) bool {
	search = strings.ToLower(strings.TrimSpace(search))
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(strings.ToLower(t), search) })
}
