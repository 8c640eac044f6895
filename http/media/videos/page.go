package videos

import (
	"net/url"
	"strconv"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/state/work"
)

// Bounds of a page.
const (
	mostPage     = 100
	standardPage = 20
)

// Page reads which jobs a client wants listed.
func Page(query url.Values) (work.VideoPage, error) {
	p := work.VideoPage{Limit: standardPage, After: query.Get("after")}
	if query.Has("limit") {
		n, err := strconv.Atoi(query.Get("limit"))
		if err != nil || n < 0 || n > mostPage {
			return p, dialogue.Invalid("limit", "must be an integer between 0 and 100")
		}
		p.Limit = n
	}
	switch query.Get("order") {
	case "", "desc":
	case "asc":
		p.Ascending = true
	default:
		return p, dialogue.Invalid("order", "must be one of asc, desc")
	}
	if len(p.After) > maxID {
		return p, dialogue.Invalid("after", "must be the id of a video")
	}
	return p, nil
}

// List returns a page of jobs as clients see it, in JSON. more says whether further jobs follow.
func List(list []work.Video, more bool) []byte {
	w := jsonw.Writer{}
	w.Object().Key("object").String("list").Key("data").Array()
	var first, last string
	for i := range list {
		appendObject(&w, &list[i])
		last = list[i].ID
	}
	if len(list) > 0 {
		first = list[0].ID
	}
	w.End().Key("first_id").StringOrNull(first).Key("last_id").StringOrNull(last).Key("has_more").Bool(more).End()
	return w.Buf
}

// Deleted returns the reply to a client that has deleted a job.
func Deleted(id string) []byte {
	w := jsonw.Writer{}
	w.Object().Key("id").String(id).Key("object").String("video.deleted").Key("deleted").Bool(true).End()
	return w.Buf
}
