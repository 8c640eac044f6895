package text

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"stagedoor/http/accesslog"
	"stagedoor/http/envelope"
	"stagedoor/http/overload"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/registry"
	"stagedoor/state"
	"stagedoor/state/identity"
)

// ModelRoutes adds the routes of the lists of models: those of GET /v1/models, which shapes share,
// and those that a shape has for itself. It returns the paths below which models are described.
func (hs *Handlers) ModelRoutes(handle func(pattern string, h http.HandlerFunc)) (below []string) {
	add := func(path string, form func(*http.Request) *modelForm) {
		handle("GET "+path, func(w http.ResponseWriter, r *http.Request) { hs.listModels(w, r, form(r)) })
		handle("GET "+path+"/{rest...}",
			func(w http.ResponseWriter, r *http.Request) { hs.describeModel(w, r, form(r)) })
		below = append(below, path+"/")
	}
	add("/v1/models", hs.sharedForm)
	for _, s := range hs.Shapes {
		if s.Models != nil && s.Models.Path != "" {
			own := formOf(s)
			add(s.Models.Path, func(*http.Request) *modelForm { return own })
		}
	}
	return below
}

// modelForm is the form of a list of models and of the errors of its routes.
type modelForm struct {
	list    *shapes.ModelList
	dialect envelope.Dialect
	query   bool // the key may be in the query
}

// formOf returns the form in which a shape lists models.
func formOf(s *shapes.Shape) *modelForm {
	return &modelForm{s.Models, s.Envelope, s.Traits.KeyInQuery}
}

// plainForm is the form for clients whose shape is unknown.
var plainForm = &modelForm{list: &shapes.ModelList{
	Page: func(models []shapes.Model, _ bool) []byte {
		var j jsonw.Writer
		j.Object().Key("object").String("list").Key("data").Array()
		for _, m := range models {
			writeModel(&j, m)
		}
		j.End().End()
		return j.Buf
	},
	One: func(m shapes.Model) []byte {
		var j jsonw.Writer
		writeModel(&j, m)
		return j.Buf
	},
}, dialect: envelope.Plain}

// writeModel writes one model of a list.
func writeModel(j *jsonw.Writer, m shapes.Model) {
	j.Object()
	j.Key("id").String(m.ID).Key("object").String("model")
	j.Key("created").Int(shapes.ModelTime.Unix()).Key("owned_by").String(m.Owner)
	j.End()
}

// sharedForm returns the form for a request to the shared path. A shape's clients may be known by
// a header that only they send.
func (hs *Handlers) sharedForm(r *http.Request) *modelForm {
	for _, s := range hs.Shapes {
		if s.Models != nil && s.Models.Header != "" && r.Header.Get(s.Models.Header) != "" {
			return formOf(s)
		}
	}
	return plainForm
}

// listModels answers with the models that the key may use.
func (hs *Handlers) listModels(w http.ResponseWriter, r *http.Request, form *modelForm) {
	key, err := hs.modelsKey(w, r, form)
	if err != nil {
		envelope.Write(w, form.dialect, err)
		return
	}
	page := page{list: hs.visible(&key, r)}
	if form.list.Paging.Size != "" {
		if page, err = pageOf(page.list, r, form.list.Paging); err != nil {
			envelope.Write(w, form.dialect, err)
			return
		}
	}
	writeJSON(w, http.StatusOK, form.list.Page(page.list, page.more))
}

// describeModel answers with the description of the model in the path. The name of a model may contain a colon, and an
// action of the shape, such as :generateContent, follows a colon too. A GET of an action is answered with 405.
func (hs *Handlers) describeModel(w http.ResponseWriter, r *http.Request, form *modelForm) {
	name := r.PathValue("rest")
	if i := strings.LastIndexByte(name, ':'); i > 0 && slices.Contains(form.list.Methods, name[i+1:]) {
		w.Header().Set("Allow", http.MethodPost)
		envelope.Write(w, form.dialect, envelope.MethodNotAllowed(r.Method, []string{http.MethodPost}))
		return
	}
	m, err := hs.oneModel(w, r, form)
	if err != nil {
		envelope.Write(w, form.dialect, err)
		return
	}
	writeJSON(w, http.StatusOK, form.list.One(m))
}

// modelsKey returns the key of a request for models, or an error if the key is unknown or may not read models. Such a
// request counts against no limit of tokens, only against the owner's share of requests.
func (hs *Handlers) modelsKey(w http.ResponseWriter, r *http.Request, form *modelForm) (identity.Key, error) {
	key, err := hs.Auth.Authenticate(r, form.query)
	if err != nil {
		return key, err
	}
	accesslog.Note(w, slog.String("key", key.ID))
	if err := hs.Auth.Permit(&key, r, registry.ScopeModels, ""); err != nil {
		return key, err
	}
	return key, overload.Claim(r.Context(), state.OwnerOf(key.ID, key.User))
}

// visible lists the models that a key may use.
func (hs *Handlers) visible(key *identity.Key, r *http.Request) []shapes.Model {
	var list []shapes.Model
	for _, m := range hs.Catalog().Models() {
		if hs.Auth.Permit(key, r, "", m.ID) == nil {
			list = append(list, shapes.Model{ID: m.ID, Owner: m.OwnedBy})
		}
	}
	return list
}

// oneModel returns the model in the path, if the key of the request may use it. It may be one that only a pattern
// serves. The error is one for the client.
func (hs *Handlers) oneModel(w http.ResponseWriter, r *http.Request, form *modelForm) (shapes.Model, error) {
	key, err := hs.modelsKey(w, r, form)
	if err != nil {
		return shapes.Model{}, err
	}
	id := strings.TrimPrefix(r.PathValue("rest"), "models/")
	if err := hs.Auth.Permit(&key, r, "", id); err != nil {
		return shapes.Model{}, err
	}
	plan := hs.planFor(id)
	if plan == nil {
		return shapes.Model{}, envelope.ModelNotFound(id)
	}
	return shapes.Model{ID: id, Owner: plan[0].Provider.Name}, nil
}
