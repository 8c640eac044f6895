package portal

import (
	"net/http"
	"slices"

	"stagedoor/http/web/pages"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/state/identity"
)

// pathModels is below the account, because /models stands for /v1/models (docs/routes.md).
const pathModels = pathAccount + "/models"

// models lists the models that the user may use, those that match the search if there is one.
func (rc *requestContext) models() {
	view := &pages.Models{Desk: rc.desk(), Query: rc.query("q"), Patterns: rc.options.Catalog().Patterns()}
	for _, m := range rc.options.Catalog().Models() {
		row, ok := rc.modelRow(m.ID)
		if !ok {
			continue
		}
		words := slices.Concat([]string{row.Name}, row.Providers, row.Abilities)
		for _, api := range row.APIs {
			if api.Native {
				words = append(words, api.Name)
			}
		}
		if matches(view.Query, words...) {
			view.Models = append(view.Models, row)
		}
	}
	rc.show(http.StatusOK, view)
}

// oneModel shows a model, also one that only a pattern serves.
func (rc *requestContext) oneModel() {
	row, ok := rc.modelRow(rc.r.PathValue("name"))
	if !ok {
		rc.missing()
		return
	}
	rc.show(http.StatusOK, &pages.OneModel{Desk: rc.desk(), Model: row,
		Clients: pages.ClientSettings(rc.addressFor(rc.r), "", row.Name)})
}

// modelRow describes a model. It reports false if there is none of that name, or the ceilings of the user forbid it.
func (rc *requestContext) modelRow(name string) (pages.ModelRow, bool) {
	entry, ok := rc.options.Catalog().Resolve(name)
	if !ok {
		return pages.ModelRow{}, false
	}
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

// apisOf says for each API of text whether a provider of the plan speaks it. The simulator speaks all of them.
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
