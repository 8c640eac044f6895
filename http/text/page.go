package text

import (
	"net/http"
	"slices"
	"strconv"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
)

const maxPage = 1000

// page is one page of a list. more reports whether further pages follow in the direction of reading.
type page struct {
	list []shapes.Model
	more bool
}

// pageOf returns the page of list that the query of r asks for.
func pageOf(list []shapes.Model, r *http.Request, p shapes.Paging) (page, error) {
	q := r.URL.Query()
	size, err := sizeOf(p, q.Get(p.Size))
	if err != nil {
		return page{}, err
	}
	if after := q.Get(p.After); after != "" {
		i := indexOfModel(list, after)
		if i < 0 {
			return page{}, dialogue.Invalid(p.After, "is not the id of a model in this list")
		}
		list = list[i+1:]
	}
	if before := q.Get(p.Before); p.Before != "" && before != "" {
		i := indexOfModel(list, before)
		if i < 0 {
			return page{}, dialogue.Invalid(p.Before, "is not the id of a model in this list")
		}
		list = list[:i]
		return page{list[max(0, i-size):], i > size}, nil
	}
	if len(list) > size {
		return page{list[:size], true}, nil
	}
	return page{list, false}, nil
}

// sizeOf returns the size of a page. Some vendors correct a size that is out of range, and their clients rely on it.
func sizeOf(p shapes.Paging, v string) (int, error) {
	if v == "" {
		return p.Default, nil
	}
	n, err := strconv.Atoi(v)
	switch {
	case err == nil && n >= 1 && n <= maxPage:
		return n, nil
	case err == nil && p.Coerce && n == 0:
		return p.Default, nil
	case err == nil && p.Coerce && n > maxPage:
		return maxPage, nil
	}
	return 0, dialogue.Invalid(p.Size, "must be an integer between 1 and "+strconv.Itoa(maxPage))
}

// indexOfModel returns where a model is in the list, or -1.
func indexOfModel(list []shapes.Model, id string) int {
	return slices.IndexFunc(list, func(m shapes.Model) bool { return m.ID == id })
}

// writeJSON writes a JSON body.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	w.Write(body)
}
