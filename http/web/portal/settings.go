package portal

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"stagedoor/http/flow"
	"stagedoor/http/settings"
	"stagedoor/http/web/browser"
	"stagedoor/http/web/pages"
	"stagedoor/providers/shapes/registry"
	"stagedoor/state"
)

const (
	// draftPurpose is the purpose of a sealed draft. A draft travels sealed, so that no page has a key that was typed.
	draftPurpose = "draft of the configuration"
	draftLife    = 30 * time.Minute
	// recentSignIn is the time after signing in for which a user may enter keys and addresses. A draft lives as long.
	recentSignIn = 30 * time.Minute
	// longestTest bounds the test of the changed providers, for which a review waits, and that of all providers.
	longestTest = 20 * time.Second
)

// pathTestAll tests all providers.
const pathTestAll = pathFlowProviders + "/test"

// settingsRoutes adds the pages that change providers and models. Without a configuration it adds none.
func (p *Portal) settingsRoutes(handle routeFunc) {
	if p.options.Settings == nil {
		return
	}
	handle("GET "+pathFlowProviders+"/new", p.admin((*requestContext).newProvider))
	handle("GET "+pathFlowProviders+"/change", p.admin((*requestContext).changeEntry))
	handle("POST "+pathFlowProviders+"/review", p.adminForm((*requestContext).reviewChange))
	handle("POST "+pathFlowProviders+"/save", p.adminForm((*requestContext).saveChange))
	handle("POST "+pathFlowProviders+"/undo", p.adminForm((*requestContext).undoChange))
	handle("POST "+pathTestAll, p.adminForm((*requestContext).testAll))
	handle("POST "+pathFlowProviders+"/{name}/test", p.adminForm((*requestContext).testProvider))
}

// providers shows the page of the providers that the parameter "q" selects, sorted by "sort" and with "open" unfolded.
// tested is the name of a provider that was just tested and checks are the results, or "" and nil. The page offers
// changes only if the configuration can be read and edited.
func (rc *requestContext) providers(tested string, checks []settings.Check) {
	view := &pages.Providers{Viewer: rc.viewer(), Tested: tested, Checks: checks, Query: pages.ProviderQuery{
		Text: strings.TrimSpace(rc.query("q")), Sort: pages.ProviderSort(rc.query("sort")), Open: rc.query("open")}}
	if rc.options.Settings != nil {
		status, err := rc.options.Settings.Status()
		if err != nil {
			view.Problem = "The configuration cannot be read, so it cannot be changed here."
			rc.options.Logger.Error("portal", "path", rc.r.URL.Path, "cause", err)
		} else if status.Editable {
			view.Status = &status
		}
	}
	var rows []pages.ProviderRow
	all := rc.options.Overview.Providers(rc.r.Context())
	view.Silent = flow.SilentNodes(all)
	for _, p := range all {
		rows = append(rows, pages.ProviderRow{Provider: p})
	}
	rc.tests.of(rc.r.Context(), rc.options.State, rc.options.Now(), rows)
	view.Select(rows)
	rc.show(http.StatusOK, view)
}

// recent reports whether the user signed in less than recentSignIn ago.
func (rc *requestContext) recent() bool {
	return rc.options.Now().Sub(rc.visitor.Session.Created) < recentSignIn
}

// newProvider shows the form for a new provider, with the shape of the parameter "shape" chosen. The form has no field
// for a key unless the sign-in is recent.
func (rc *requestContext) newProvider() {
	status, err := rc.options.Settings.Status()
	if err != nil {
		rc.settingsFailed(err)
		return
	}
	view := &pages.NewProvider{Viewer: rc.viewer(), Version: status.Version,
		Shapes: append(registry.Names(), "sandbox"),
		Recent: rc.recent(), Placeholder: "https://api.example.com"}
	if shape := rc.query("shape"); slices.Contains(view.Shapes, shape) {
		view.Shape = shape
	}
	rc.show(http.StatusOK, view)
}

// changeEntry shows the form with the settings of the provider or model that the parameters "kind" and "name" name.
// Models without a name are a form for a new model. Delicate settings are left out unless the sign-in is recent.
func (rc *requestContext) changeEntry() {
	view := &pages.ChangeEntry{Viewer: rc.viewer(), Kind: rc.query("kind"), Name: rc.query("name"), Recent: rc.recent()}
	if view.Kind != settings.Models && (view.Kind != settings.Providers || view.Name == "") {
		rc.missing()
		return
	}
	status, err := rc.options.Settings.Status()
	var all []settings.Setting
	if err == nil {
		all, err = rc.options.Settings.Settings(view.Kind, view.Name)
	}
	if err != nil {
		rc.settingsFailed(err)
		return
	}
	view.Version = status.Version
	for _, s := range all {
		// Of a target, only the usual settings are offered that it does not have. The others are those of its model.
		rare := len(s.Path) > 2 && s.Value == "" && (s.Path[0] == "targets" || s.Path[0] == "fallback") &&
			s.Path[2] != "weight"
		if (view.Recent || !delicate(s.Path)) && !rare {
			// A delicate field that is left out of the form cannot be changed by it, because difference changes only
			// what the form has.
			view.Fields = append(view.Fields, pages.SettingField{Setting: s, Input: inputName(s.Path)})
		}
	}
	rc.show(http.StatusOK, view)
}

// inputName returns the name of a form's field for a setting. The path is written as JSON, so that different paths
// never have the same name, because names in paths may have any characters.
func inputName(path []string) string {
	name, _ := json.Marshal(path) // strings are always encoded
	return "set:" + string(name)
}

// delicate reports whether a setting of a provider is a secret or decides where secrets are sent.
func delicate(path []string) bool {
	return len(path) > 0 && (path[0] == "api_keys" || path[0] == "headers" || path[0] == "base_url")
}

// secretEdits reports whether a draft needs a recent sign-in, because it sets or removes delicate settings of a
// provider, or writes a provider as a whole. Drafts that only remove providers or change models need none.
func secretEdits(d *settings.Draft) bool {
	return slices.ContainsFunc(d.Edits, func(e settings.Edit) bool {
		return e.Path[0] == settings.Providers && (len(e.Path) == 2 && e.Value != nil || delicate(e.Path[2:]))
	})
}

// reviewChange reads a form, or a draft for which a better address was chosen, and shows what it would do.
func (rc *requestContext) reviewChange() {
	var d settings.Draft
	var err error
	switch {
	case rc.form.Has("draft"):
		if err = rc.unseal(&d); err == nil && rc.form.Get("better") != "" {
			d.Edits = append(d.Edits, settings.Edit{Value: valueOf(settings.Text, rc.form.Get("better")),
				Path: []string{settings.Providers, rc.form.Get("provider"), "base_url"}})
		}
	case rc.form.Has("shape"):
		d = rc.addition()
	default:
		d, err = rc.difference()
	}
	if err != nil {
		rc.settingsFailed(err)
		return
	}
	rc.review(d, http.StatusOK)
}

// review shows what a draft would change and the mistakes in it. The page has the draft sealed, for
// saveChange. A draft without mistakes is tried out first: the providers that it changes are tested for up to
// longestTest, unless the draft needs a recent sign-in and the user has none. The draft goes through the
// browser, sealed, so the gateway keeps nothing between review and save, and no field can be changed in
// between.
func (rc *requestContext) review(d settings.Draft, status int) {
	r, err := rc.options.Settings.Review(d)
	if err != nil {
		rc.settingsFailed(err)
		return
	}
	d.Version = r.Version // the page shows the difference to this one
	view := &pages.ReviewChange{Viewer: rc.viewer(), Review: r, Back: pathFlowProviders,
		Recent: rc.recent() || !secretEdits(&d)}
	if view.Draft, err = rc.options.Browser.Seal(draftPurpose, &rc.visitor, draftLife, d); err != nil {
		rc.settingsFailed(err)
		return
	}
	var names []string
	for _, e := range d.Edits {
		stays := e.Value != nil || len(e.Path) > 2
		if e.Path[0] == settings.Providers && stays && !slices.Contains(names, e.Path[1]) {
			names = append(names, e.Path[1])
		}
	}
	const mostTested = 4 // a form changes one
	ctx, cancel := context.WithTimeout(rc.r.Context(), longestTest)
	defer cancel()
	for _, name := range names[:min(len(names), mostTested)] {
		if len(r.Mistakes) == 0 && view.Recent {
			tests, err := rc.options.Settings.Test(ctx, name, &d)
			// A provider that cannot be tested is no reason to hide the review. What is wrong with it is among the
			// mistakes.
			if err != nil && !errors.Is(err, state.ErrNotFound) && !errors.Is(err, state.ErrInvalid) {
				rc.settingsFailed(err)
				return
			}
			view.Tests = append(view.Tests, tests...)
		}
	}
	rc.show(status, view)
}

// unseal reads the draft that review sealed for this user. The error is browser.ErrForged or browser.ErrExpired.
func (rc *requestContext) unseal(d *settings.Draft) error {
	err := rc.options.Browser.Unseal(draftPurpose, &rc.visitor, rc.form.Get("draft"), d)
	if err == nil && slices.ContainsFunc(d.Edits, func(e settings.Edit) bool { return len(e.Path) < 2 }) {
		err = browser.ErrForged
	}
	return err
}

// addition returns the draft of the form for a new provider, with the models that it shall serve. Nothing is
// checked here; the review lists the mistakes. A model with a pattern gets the target "*", which keeps the
// name that the client asks for.
func (rc *requestContext) addition() settings.Draft {
	f := fields{form: rc.form}
	name := f.text("new")
	entry := map[string]any{"shape": f.text("shape")}
	if url := f.text("url"); url != "" {
		entry["base_url"] = url
	}
	if key := f.text("key"); key != "" {
		entry["api_keys"] = []string{key}
	}
	limits := map[string]any{}
	for _, limit := range []string{"rpm", "concurrency"} {
		if text := f.text(limit); text != "" {
			limits[limit] = json.RawMessage(valueOf(settings.Number, text))
		}
	}
	if len(limits) > 0 {
		entry["limits"] = limits
	}
	d := settings.Draft{Version: f.text("version")}
	// One edit for each setting keeps them in the sequence in which people write them.
	for _, setting := range []string{"shape", "base_url", "api_keys", "limits"} {
		if v, ok := entry[setting]; ok {
			text, _ := json.Marshal(v) // maps and lists of strings are always encoded
			d.Edits = append(d.Edits, settings.Edit{Path: []string{settings.Providers, name, setting}, Value: text})
		}
	}
	for _, model := range f.list("serves") {
		there := model
		if strings.Contains(model, "*") {
			there = "*"
		}
		text, _ := json.Marshal(map[string]any{"targets": []any{map[string]string{"provider": name, "model": there}}})
		d.Edits = append(d.Edits, settings.Edit{Path: []string{settings.Models, model}, Value: text})
	}
	return d
}

// difference returns the draft of a form with the settings of a provider or a model: what differs from the
// settings of now. Fields that the form does not have stay as they are. Edits are made one after the other,
// so additions come before removals: numbers of list elements then still mean what the form has shown.
func (rc *requestContext) difference() (settings.Draft, error) {
	f := fields{form: rc.form}
	kind, name := f.text("kind"), f.text("name")
	d := settings.Draft{Version: f.text("version")}
	at := func(path ...string) []string { return append([]string{kind, name}, path...) }
	// A removal ignores all other fields of the form, which browsers send as well.
	if f.text("remove") == "yes" {
		d.Edits = []settings.Edit{{Path: at()}}
		return d, nil
	}
	all, err := rc.options.Settings.Settings(kind, name)
	added := errors.Is(err, state.ErrNotFound) && kind == settings.Models // a new one
	if added {
		all, err = rc.options.Settings.Settings(kind, "")
	}
	if err != nil {
		return d, err
	}
	var removed []settings.Edit
	if f.text("provider") != "" && added {
		list := slices.Concat([]byte("["), f.target(), []byte("]"))
		d.Edits = append(d.Edits, settings.Edit{Path: at("targets"), Value: list})
	} else if f.text("provider") != "" {
		// Settings are addressed by their place in a list, so the place behind the last one adds a target.
		number := strconv.Itoa(elements(all, "targets"))
		d.Edits = append(d.Edits, settings.Edit{Path: at("targets", number), Value: f.target()})
	}
	for _, s := range all {
		input := inputName(s.Path)
		typed := f.text(input)
		emptied := s.Kind != settings.Secret && f.form.Has(input) && typed == "" && s.Value != ""
		switch {
		case f.text("remove:"+input) == "yes", emptied:
			removed = append(removed, settings.Edit{Path: at(s.Path...)})
		case typed == "" || typed == s.Value:
		default:
			d.Edits = append(d.Edits, settings.Edit{Path: at(s.Path...), Value: valueOf(s.Kind, typed)})
		}
	}
	// The fields of keys are always empty, because a page never has a key. A key that is typed is therefore a further
	// one.
	if key, number := f.text("key"), elements(all, "api_keys"); key != "" && number == 0 {
		d.Edits = append(d.Edits, settings.Edit{Path: at("api_keys"), Value: valueOf(settings.List, key)})
	} else if key != "" {
		at := at("api_keys", strconv.Itoa(number))
		d.Edits = append(d.Edits, settings.Edit{Path: at, Value: valueOf(settings.Text, key)})
	}
	slices.Reverse(removed) // the last elements of a list first, so that the numbers of the others stay
	d.Edits = append(d.Edits, removed...)
	return d, nil
}

// elements returns the number of elements of a list among all settings, which is the index at which another one is
// added.
func elements(all []settings.Setting, list string) int {
	next := 0
	for _, s := range all {
		if len(s.Path) < 2 || s.Path[0] != list {
			continue
		}
		if n, err := strconv.Atoi(s.Path[1]); err == nil {
			next = max(next, n+1)
		}
	}
	return next
}

// target returns the target of a model that the form describes, as JSON.
func (f *fields) target() []byte {
	target := map[string]any{"provider": f.text("provider"), "model": f.text("model")}
	if text := f.text("weight"); text != "" {
		target["weight"] = json.RawMessage(valueOf(settings.Number, text))
	}
	text, _ := json.Marshal(target) // texts are always encoded
	return text
}

// valueOf returns what was typed as JSON. A number that is none stays a text, which the check of the configuration
// refuses in its own words.
func valueOf(kind settings.Kind, typed string) []byte {
	var v any = typed
	switch kind {
	case settings.List:
		v = strings.FieldsFunc(typed, func(r rune) bool { return r == ',' || r == ' ' })
	case settings.Flag:
		v = typed == "true"
	case settings.Number:
		if n, err := strconv.ParseInt(typed, 10, 64); err == nil {
			v = n
		}
	}
	text, _ := json.Marshal(v) // texts, numbers and lists of texts are always encoded
	return text
}

// saveChange saves the draft that was reviewed. It shows the review again if the sign-in is no longer recent enough for
// the draft, or if the configuration does not take it.
func (rc *requestContext) saveChange() {
	var d settings.Draft
	if err := rc.unseal(&d); err != nil {
		rc.settingsFailed(err)
		return
	}
	// The review may have been open for longer than a sign-in counts as recent. A session that was stolen must not be
	// enough to send keys to another address.
	if secretEdits(&d) && !rc.recent() {
		rc.review(d, http.StatusForbidden)
		return
	}
	r, err := rc.options.Settings.Save(rc.r.Context(), d, rc.user.Username)
	switch {
	case err != nil:
		rc.settingsFailed(err)
	case !r.Saved:
		rc.review(d, http.StatusConflict)
	default:
		rc.done(pathFlowProviders, "configuration_saved")
	}
}

// undoChange takes the last change back, or shows why the earlier configuration cannot be put in force. A second undo
// makes the change again.
func (rc *requestContext) undoChange() {
	r, err := rc.options.Settings.Undo(rc.r.Context(), rc.user.Username)
	switch {
	case err != nil:
		rc.settingsFailed(err)
	case !r.Saved:
		rc.show(http.StatusConflict, &pages.Failure{Title: "That did not work", Message: "The earlier configuration " +
			"cannot be put in force: " + strings.Join(r.Mistakes, "; ")})
	default:
		rc.done(pathFlowProviders, "configuration_undone")
	}
}

// testProvider tests a provider as it is in force and shows the page of providers with the results. The
// results are kept for the next visitors of the page.
func (rc *requestContext) testProvider() {
	name := rc.r.PathValue("name")
	checks, err := rc.options.Settings.Test(rc.r.Context(), name, nil)
	if err != nil {
		rc.settingsFailed(err)
		return
	}
	rc.keepTests([]string{name}, checks)
	rc.providers(name, checks)
}

// testAll tests all providers as they are in force, for up to longestTest, and shows the page of providers with the
// results.
func (rc *requestContext) testAll() {
	if rc.options.Overview == nil {
		rc.missing()
		return
	}
	ctx, cancel := context.WithTimeout(rc.r.Context(), longestTest)
	defer cancel()
	checks, err := rc.options.Settings.Test(ctx, "", nil)
	if err != nil {
		rc.settingsFailed(err)
		return
	}
	var names []string
	for _, p := range rc.options.Overview.Providers(rc.r.Context()) {
		names = append(names, p.Name)
	}
	rc.keepTests(names, checks)
	rc.providers("all providers", checks)
}

// settingsFailed answers a request about the configuration that failed.
func (rc *requestContext) settingsFailed(err error) {
	status, text := http.StatusConflict, ""
	switch {
	case errors.Is(err, state.ErrNotFound):
		rc.missing()
		return
	case errors.Is(err, browser.ErrForged):
		rc.show(http.StatusForbidden, failureForeign)
		return
	case errors.Is(err, browser.ErrTooLong):
		text = "The change is too long for this page. Make it in several steps, or by the API of administration."
	case errors.Is(err, browser.ErrExpired):
		text = "The review is older than 30 minutes. Open the form again."
	case errors.Is(err, settings.ErrOff):
		status, text = http.StatusForbidden, sentence(err.Error())
	case errors.Is(err, settings.ErrConflict), errors.Is(err, settings.ErrNoUndo):
		text = sentence(err.Error())
	default:
		rc.busy(rc.w, rc.r, err)
		return
	}
	rc.show(status, &pages.Failure{Title: "That did not work", Message: text,
		Back: &pages.Link{Name: "Providers", Path: pathFlowProviders}})
}
