package portal

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"

	"stagedoor/actors/videojob"
	"stagedoor/http/envelope"
	"stagedoor/http/web/pages"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/video"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/work"
)

// images shows the page that makes pictures.
func (rc *requestContext) images() {
	rc.show(http.StatusOK, &pages.Images{Viewer: rc.viewer(), FormToken: rc.formToken(&imagesPage),
		Maker: rc.maker(pages.KindImage)})
}

// maker returns the form that makes images or videos, with the listed models of this kind that the user may use. The
// list is empty for a visitor who is not signed in. The chosen model is that of the parameter "model", else the first
// of the list, else the usual example of the kind if the catalogue serves it, perhaps by a pattern, else "".
func (rc *requestContext) maker(kind string) pages.Maker {
	m := pages.Maker{Model: rc.query("model")}
	for _, listed := range rc.options.Catalog().Models() {
		if row, ok := rc.modelRow(listed.ID); ok && row.Kind == kind && rc.visitor.SignedIn() {
			m.Models = append(m.Models, row)
		}
	}
	example := catalog.ExampleOf(kind)
	if _, served := rc.options.Catalog().Resolve(example); m.Model == "" && len(m.Models) > 0 {
		m.Model = m.Models[0].Name
	} else if m.Model == "" && served {
		m.Model = example
	}
	return m
}

// keptRoutes are the routes by which the scripts of /chat and /images keep what was made, in conversations of the
// account. Their quota, their deletion with the account and their files are those of all conversations, which a table
// of the pages' own would need again. The metadata "page" of a conversation says which page it belongs to.
var keptRoutes = []string{"POST /conversations", "GET /conversations/{id}", "POST /conversations/{id}",
	"DELETE /conversations/{id}", "POST /conversations/{id}/items", "GET /conversations/{id}/items"}

// keptPage is the number of conversations in one page of a list.
const keptPage = 50

// keptConversation is an entry of a list.
type keptConversation struct {
	ID       string          `json:"id"`
	Created  int64           `json:"created_at"`
	Metadata json.RawMessage `json:"metadata"`
}

// listKept lists the conversations that the user keeps on a page, newest first, from the place in the parameter "after"
// on. The API of conversations has no list.
func (p *Portal) listKept(page *scriptedPage) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key, err := p.delegate(page, r)
		if err != nil {
			envelope.Write(w, envelope.Plain, err)
			return
		}
		owner := state.OwnerOf(key.ID, key.User)
		reply := struct {
			Data []keptConversation `json:"data"`
			Next string             `json:"next,omitempty"` // for the parameter "after"; "" at the end
		}{Data: []keptConversation{}}
		after, err := work.ParsePlace(r.URL.Query().Get("after"))
		if err != nil {
			envelope.Write(w, envelope.Plain, dialogue.Invalid("after", "must be that of the page before"))
			return
		}
		latest := work.LatestConversations(p.options.State.View(), owner, page.purpose, after, keptPage+1)
		for _, c := range latest[:min(len(latest), keptPage)] {
			metadata, err := work.ReadMetadata(r.Context(), p.options.State, c.ID, owner)
			if errors.Is(err, state.ErrNotFound) { // it was deleted meanwhile
				continue
			}
			if err != nil {
				envelope.Write(w, envelope.Plain, dialogue.StorageUnavailable("list conversations", err))
				return
			}
			reply.Data = append(reply.Data, keptConversation{c.ID, c.Created.Unix(), metadata})
		}
		if len(latest) > keptPage {
			reply.Next = latest[keptPage-1].Place().String()
		}
		writeJSON(w, reply)
	}
}

// videoPrice writes {"price":N}, the micro-dollars that a video would hold of the user's balance now, which is the sum
// that the job would hold. The parameters are a model and a number of seconds, or "remix" with the id of a video of the
// user.
func (p *Portal) videoPrice(w http.ResponseWriter, r *http.Request) {
	key, err := p.delegate(&livePage, r)
	var price int64
	if err == nil {
		price, err = p.priceOfVideo(&key, r.URL.Query())
	}
	if err != nil {
		envelope.Write(w, envelope.Plain, err)
		return
	}
	writeJSON(w, map[string]int64{"price": price})
}

// priceOfVideo returns the price that videoPrice writes. A remix has the model, the provider and the length of its
// source. A model, a provider or a video that the user may not use is an error.
func (p *Portal) priceOfVideo(key *identity.Key, query url.Values) (int64, error) {
	model, op, provider := query.Get("model"), video.Create, ""
	seconds, badSeconds := strconv.ParseInt(query.Get("seconds"), 10, 16)
	if id := query.Get("remix"); id != "" {
		source, ok := work.FindVideo(p.options.State.View(), id, state.OwnerOf(key.ID, key.User))
		if !ok {
			return 0, dialogue.VideoNotFound(id)
		}
		model, op, provider, seconds, badSeconds = source.Model, video.Remix, source.Provider, source.Seconds, nil
	}
	entry, ok := p.options.Catalog().Resolve(model)
	switch {
	case !ok:
		return 0, envelope.ModelNotFound(model)
	case badSeconds != nil || seconds < 0:
		return 0, dialogue.Invalid("seconds", "must be a whole number of seconds")
	}
	if err := identity.AccessOf(p.options.State).UserPermits(key.User, livePage.scopes[0], model); err != nil {
		return 0, err
	}
	plan := entry.Plan(rand.IntN)
	if provider != "" {
		var err error
		if plan, err = videojob.AtProvider(plan, provider); err != nil {
			return 0, err
		}
	}
	return p.options.VideoPrice(plan, op, seconds)
}

// videoQueue writes {"positions":{ID:N}} with the user's jobs that wait. The first job of a provider's queue has
// position 1, and the jobs of all users count. Jobs that the provider works on are left out.
func (p *Portal) videoQueue(w http.ResponseWriter, r *http.Request) {
	key, err := p.delegate(&livePage, r)
	if err != nil {
		envelope.Write(w, envelope.Plain, err)
		return
	}
	owner := state.OwnerOf(key.ID, key.User)
	positions, waiting := map[string]int{}, map[string]int{}
	for _, v := range work.ListUnfinishedVideos(p.options.State.View()) {
		switch v.Phase {
		case work.VideoAccepted, work.VideoSubmitting, work.VideoQueued:
			waiting[v.Provider]++
			if v.Owner == owner {
				positions[v.ID] = waiting[v.Provider]
			}
		}
	}
	writeJSON(w, map[string]any{"positions": positions})
}

// writeJSON answers the script of a page.
func writeJSON(w http.ResponseWriter, v any) {
	pages.NoStore(w.Header())
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	_ = json.NewEncoder(w).Encode(v) // fails only if the browser has left
}
