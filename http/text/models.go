package text

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"stagedoor/http/access"
	"stagedoor/http/envelope"
	"stagedoor/http/intake"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/shapes/gemini"
	"stagedoor/state"
)

// launched is the creation time that models without one of their own report.
// Clients sort by it; it must not change between requests.
var launched = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// Models is GET /v1/models. Clients of the messages shape, known by their
// version header, get that shape's list (wire/messages.md 7).
func (d *Doors) Models(w http.ResponseWriter, r *http.Request) {
	key, err := d.modelsKey(w, r)
	if err != nil {
		envelope.Write(w, d.modelsDialect(r), err)
		return
	}
	list := d.visible(&key, r)
	if isMessagesClient(r) {
		d.messagesModels(w, r, list)
		return
	}
	var j jsonw.Writer
	j.Object().Key("object").String("list").Key("data").Array()
	for _, m := range list {
		writeModel(&j, m)
	}
	j.End().End()
	writeJSON(w, http.StatusOK, j.Buf)
}

// Model is GET /v1/models/{model}.
func (d *Doors) Model(w http.ResponseWriter, r *http.Request) {
	m, err := d.oneModel(w, r, r.PathValue("rest"))
	if err != nil {
		envelope.Write(w, d.modelsDialect(r), err)
		return
	}
	var j jsonw.Writer
	if isMessagesClient(r) {
		writeMessagesModel(&j, m)
	} else {
		writeModel(&j, m)
	}
	writeJSON(w, http.StatusOK, j.Buf)
}

// GeminiModels is GET /v1beta/models.
func (d *Doors) GeminiModels(w http.ResponseWriter, r *http.Request) {
	dialect := d.Shapes[dialogue.Gemini].Envelope
	key, err := d.modelsKey(w, r)
	if err != nil {
		envelope.Write(w, dialect, err)
		return
	}
	page, err := pageOf(d.visible(&key, r), r, paging{size: "pageSize", usual: 50, after: "pageToken", coerce: true})
	if err != nil {
		envelope.Write(w, dialect, err)
		return
	}
	var models []gemini.Model
	for _, m := range page.list {
		models = append(models, gemini.Model{ID: m.ID})
	}
	next := ""
	if page.more {
		next = page.list[len(page.list)-1].ID
	}
	writeJSON(w, http.StatusOK, gemini.ModelList(models, next))
}

// GeminiModel is GET /v1beta/models/{model}. The paths of the methods begin
// alike, and a model's name may hold a colon.
func (d *Doors) GeminiModel(w http.ResponseWriter, r *http.Request) {
	if _, method, ok := gemini.SplitPath(r.PathValue("rest")); ok && slices.Contains(gemini.Methods, method) {
		w.Header().Set("Allow", http.MethodPost)
		envelope.Write(w, d.Shapes[dialogue.Gemini].Envelope, envelope.MethodNotAllowed(r.Method, []string{http.MethodPost}))
		return
	}
	m, err := d.oneModel(w, r, r.PathValue("rest"))
	if err != nil {
		envelope.Write(w, d.Shapes[dialogue.Gemini].Envelope, err)
		return
	}
	writeJSON(w, http.StatusOK, gemini.ModelObject(gemini.Model{ID: m.ID}))
}

func (d *Doors) modelsKey(w http.ResponseWriter, r *http.Request) (state.Key, error) {
	key, err := d.Auth.Authenticate(r, strings.HasPrefix(r.URL.Path, "/v1beta/"))
	if err != nil {
		return key, err
	}
	access.Note(w, slog.String("key", key.ID))
	if err := d.Auth.Permit(&key, r, state.ScopeModels, ""); err != nil {
		return key, err
	}
	return key, intake.Claim(r.Context(), state.OwnerOf(key.ID, key.User))
}

func (d *Doors) modelsDialect(r *http.Request) envelope.Dialect {
	if isMessagesClient(r) {
		return d.Shapes[dialogue.Messages].Envelope
	}
	return envelope.Plain
}

func isMessagesClient(r *http.Request) bool { return r.Header.Get("Anthropic-Version") != "" }

// visible lists the models a key may use.
func (d *Doors) visible(key *state.Key, r *http.Request) []catalog.ModelInfo {
	var list []catalog.ModelInfo
	for _, m := range d.Catalog().Models() {
		if d.Auth.Permit(key, r, "", m.ID) == nil {
			list = append(list, m)
		}
	}
	return list
}

// oneModel finds a model by name; one that only a pattern serves counts too.
func (d *Doors) oneModel(w http.ResponseWriter, r *http.Request, id string) (catalog.ModelInfo, error) {
	key, err := d.modelsKey(w, r)
	if err != nil {
		return catalog.ModelInfo{}, err
	}
	id = strings.TrimPrefix(id, "models/")
	if err := d.Auth.Permit(&key, r, "", id); err != nil {
		return catalog.ModelInfo{}, err
	}
	plan := d.planFor(id)
	if plan == nil {
		return catalog.ModelInfo{}, envelope.ModelNotFound(id)
	}
	return catalog.ModelInfo{ID: id, OwnedBy: plan[0].Provider.Name}, nil
}

func writeModel(j *jsonw.Writer, m catalog.ModelInfo) {
	j.Object()
	j.Key("id").String(m.ID).Key("object").String("model")
	j.Key("created").Int(launched.Unix()).Key("owned_by").String(m.OwnedBy)
	j.End()
}

func writeMessagesModel(j *jsonw.Writer, m catalog.ModelInfo) {
	j.Object()
	j.Key("type").String("model").Key("id").String(m.ID).Key("display_name").String(m.ID)
	j.Key("created_at").String(launched.Format(time.RFC3339))
	j.End()
}

// messagesModels is the list of the messages shape, with its cursors.
func (d *Doors) messagesModels(w http.ResponseWriter, r *http.Request, list []catalog.ModelInfo) {
	page, err := pageOf(list, r, paging{size: "limit", usual: 20, after: "after_id", before: "before_id"})
	if err != nil {
		envelope.Write(w, d.Shapes[dialogue.Messages].Envelope, err)
		return
	}
	var j jsonw.Writer
	j.Object().Key("data").Array()
	for _, m := range page.list {
		writeMessagesModel(&j, m)
	}
	j.End()
	first, last := "", ""
	if n := len(page.list); n > 0 {
		first, last = page.list[0].ID, page.list[n-1].ID
	}
	j.Key("first_id").StringOrNull(first).Key("last_id").StringOrNull(last).Key("has_more").Bool(page.more).End()
	writeJSON(w, http.StatusOK, j.Buf)
}
