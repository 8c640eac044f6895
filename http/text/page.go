package text

import (
	"net/http"
	"strconv"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
)

const maxPage = 1000

// pageOf cuts a page out of a list: size from the query parameter named, what
// follows the entry after.
func pageOf(list []catalog.ModelInfo, r *http.Request, name string, size int, after string) ([]catalog.ModelInfo, bool, error) {
	if v := r.URL.Query().Get(name); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > maxPage {
			return nil, false, dialogue.Invalid(name, "must be an integer between 1 and "+strconv.Itoa(maxPage))
		}
		size = n
	}
	if after != "" {
		for i, m := range list {
			if m.ID == after {
				list = list[i+1:]
				break
			}
		}
	}
	if len(list) > size {
		return list[:size], true, nil
	}
	return list, false, nil
}

func modelNotFound(id string) *dialogue.Error {
	return &dialogue.Error{Status: 404, Type: dialogue.TypeNotFound, Param: "model", Code: "model_not_found",
		Message: "the model " + strconv.QuoteToASCII(short(id)) + " is not served here"}
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	w.Write(body)
}
