package portal

import (
	"net/http"
	"slices"

	"stagedoor/http/flow"
	"stagedoor/http/settings"
	"stagedoor/http/web/pages"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/state/identity"
)

// pathModels is below the account, because /models stands for /v1/models (docs/routes.md).
const pathModels = pathAccount + "/models"

// models lists the models that the user may use, those that match the search if there is one.
func (rc *requestContext) models() {
	view := &pages.Models{Viewer: rc.viewer(), Patterns: rc.options.Catalog().Patterns(), Add: rc.changePath(""),
		Query: pages.ModelQuery{Text: rc.query("q"), Kind: rc.query("kind"), Sort: rc.query("sort")}}
	measured := rc.measured("")
	var all []pages.ModelRow
	for _, m := range rc.options.Catalog().Models() {
		if row, ok := rc.modelRow(m.ID); ok {
			rc.measure(&row, &measured)
			all = append(all, row)
		}
	}
	view.Select(all)
	view.Silent = measured.Silent
	rc.show(http.StatusOK, view)
}

// measured returns the states of the providers and the figures of a model, or of all if the name is "". Without an
// overview it has nothing.
func (rc *requestContext) measured(model string) (m flow.Measured) {
	if rc.options.Overview != nil {
		m = rc.options.Overview.Models(rc.r.Context(), model)
	}
	return m
}

// measure adds the states of the providers and the speed of the last hour to a model.
func (rc *requestContext) measure(row *pages.ModelRow, m *flow.Measured) {
	for _, name := range row.Providers {
		for i := range m.Providers {
			if p := &m.Providers[i]; p.Name == name {
				row.Served = append(row.Served, pages.NewServing(*p))
			}
		}
	}
	figures := m.Models[row.Name]
	hour := figures.Hour()
	row.Speed = pages.ModelSpeed{Requests: hour.Requests, First: hour.First.P50, Slow: hour.First.P95, Rate: hour.Rate}
	for _, m := range hour.Minutes {
		row.Speed.Rates = append(row.Speed.Rates, m.Rate)
	}
}

// changePath returns the address of the form for a model of the configuration, or for a new one if name is "". It
// returns "" if the user cannot change it.
func (rc *requestContext) changePath(name string) string {
	if !rc.user.Admin || rc.options.Settings == nil {
		return ""
	}
	if status, err := rc.options.Settings.Status(); err != nil || !status.Editable {
		return ""
	}
	if _, err := rc.options.Settings.Settings(settings.Models, name); err != nil {
		return ""
	}
	return pages.ChangePath(settings.Models, name)
}

// oneModel shows a model, also one that only a pattern serves.
func (rc *requestContext) oneModel() {
	row, ok := rc.modelRow(rc.r.PathValue("name"))
	if !ok {
		rc.missing()
		return
	}
	measured := rc.measured(row.Name)
	rc.measure(&row, &measured)
	rc.show(http.StatusOK, &pages.OneModel{Viewer: rc.viewer(), Model: row, Silent: measured.Silent,
		Change:  rc.changePath(row.Name),
		Clients: pages.ClientSettings(rc.addressFor(rc.r), "", row.Name)})
}

// modelRow describes a model. It reports false if there is none of that name, or the ceilings of the user forbid it.
func (rc *requestContext) modelRow(name string) (pages.ModelRow, bool) {
	entry, ok := rc.options.Catalog().Resolve(name)
	if !ok {
		return pages.ModelRow{}, false
	}
	// A plan is drawn by the weights of targets, so without chance it is the same each time the page is drawn. Prices
	// and limits are those of its first target, and ExactPrice says whether the others agree.
	plan := entry.Plan(func(int) int { return 0 })
	first := &plan[0]
	row := pages.ModelRow{Name: name, MaxOutput: first.OutputLimit(), Abilities: abilities(first),
		Price: priceOf(first, rc), ExactPrice: true}
	row.Context, _ = first.ContextWindow()
	if configured, exact := first.MaxOutput(); exact {
		row.MaxOutput = configured
	}
	for i := range plan {
		price := priceOf(&plan[i], rc)
		if !price.Known || price.Estimate || plan[i].Estimate("", rc.options.Now()).PerToken() ||
			price.PerImage != row.Price.PerImage || price.PerSecond != row.Price.PerSecond {
			row.ExactPrice = false
		}
		if p := plan[i].Provider.Name; !slices.Contains(row.Providers, p) {
			row.Providers = append(row.Providers, p)
		}
	}
	scope := "chat"
	switch row.Kind = first.Kind(); row.Kind {
	case pages.KindImage, pages.KindVideo:
		scope = row.Kind + "s"
		row.APIs = []pages.API{{Letter: scope[:1], Name: scope, Native: true}}
	default:
		row.APIs = apisOf(plan)
	}
	return row, identity.AccessOf(rc.options.State).UserPermits(rc.user.Username, scope, name) == nil
}

// textAPIs are the shapes of text, with the letters that stand for them in lists.
var textAPIs = []struct {
	letter, name string
	shape        dialogue.Shape
}{{"C", "chat completions", "chat"}, {"R", "responses", "responses"}, {"M", "messages", "messages"},
	{"L", "completions", "completions"}, {"G", "generateContent", "gemini"}}

// apisOf returns the APIs of text, each with whether a provider of the plan speaks it natively. The simulator speaks
// all of them.
func apisOf(plan []catalog.Candidate) []pages.API {
	var all []pages.API
	for _, a := range textAPIs {
		native := slices.ContainsFunc(plan, func(c catalog.Candidate) bool {
			return c.Provider.Serves(a.shape) || c.Provider.Shape == catalog.Sandbox
		})
		all = append(all, pages.API{Letter: a.letter, Name: a.name, Native: native})
	}
	return all
}

// abilities returns what a model can do, in the words of the page.
func abilities(c *catalog.Candidate) []string {
	caps := c.Target(c.Provider.Shape).Caps
	var all []string
	for _, a := range []struct {
		name string
		has  bool
	}{{"vision", caps.ImagesIn}, {"files", caps.FilesIn}, {"audio", caps.AudioIn},
		{"JSON schema", caps.StructuredOutputs}, {"reasoning", caps.Thinking != 0}} {
		if a.has {
			all = append(all, a.name)
		}
	}
	return all
}

// priceOf returns the price of a model. A price that is only estimated is not charged, and the page says so.
func priceOf(c *catalog.Candidate, rc *requestContext) pages.ModelPrice {
	now := rc.options.Now()
	price := c.Estimate("", now)
	if price == nil {
		return pages.ModelPrice{Known: c.Provider.Shape == catalog.Sandbox, Free: c.Provider.Shape == catalog.Sandbox}
	}
	return pages.ModelPrice{Known: true, Free: price.Zero(), Estimate: c.Rates(now) == nil, Input: price.Input,
		Output: price.Output, PerSecond: price.PerSecond, PerImage: price.PerImage, Source: price.Source}
}
