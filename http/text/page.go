package text

import (
	"net/http"
	"slices"
	"strconv"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
)

const maxPage = 1000

// paging is how one list is asked for its pages: the names of its query
// parameters.
type paging struct {
	size          string
	usual         int // size if none is given
	after, before string
	coerce        bool // a size that is too large counts as the largest
}

// page is a piece of a list, and whether there is more of it in the direction
// in which it is read.
type page struct {
	list []catalog.ModelInfo
	more bool
}

// pageOf cuts the page out of a list that a query asks for.
func pageOf(list []catalog.ModelInfo, r *http.Request, p paging) (page, error) {
	q := r.URL.Query()
	size, err := p.sizeOf(q.Get(p.size))
	if err != nil {
		return page{}, err
	}
	if after := q.Get(p.after); after != "" {
		i := find(list, after)
		if i < 0 {
			return page{}, dialogue.Invalid(p.after, "is not the id of a model in this list")
		}
		list = list[i+1:]
	}
	if before := q.Get(p.before); p.before != "" && before != "" {
		i := find(list, before)
		if i < 0 {
			return page{}, dialogue.Invalid(p.before, "is not the id of a model in this list")
		}
		list = list[:i]
		return page{list[max(0, i-size):], i > size}, nil
	}
	if len(list) > size {
		return page{list[:size], true}, nil
	}
	return page{list, false}, nil
}

func (p *paging) sizeOf(v string) (int, error) {
	if v == "" {
		return p.usual, nil
	}
	n, err := strconv.Atoi(v)
	switch {
	case err == nil && n >= 1 && n <= maxPage:
		return n, nil
	case err == nil && p.coerce && n == 0:
		return p.usual, nil
	case err == nil && p.coerce && n > maxPage:
		return maxPage, nil
	}
	return 0, dialogue.Invalid(p.size, "must be an integer between 1 and "+strconv.Itoa(maxPage))
}

func find(list []catalog.ModelInfo, id string) int {
	return slices.IndexFunc(list, func(m catalog.ModelInfo) bool { return m.ID == id })
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	w.Write(body)
}
