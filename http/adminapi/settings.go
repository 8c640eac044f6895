package adminapi

import (
	"errors"
	"net/http"

	"stagedoor/http/settings"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
)

// settingsRoutes change providers and models of the configuration, and test providers.
var settingsRoutes = []route{
	{method: "GET", path: "/configuration", name: "getConfiguration", group: "configuration",
		summary: "Get the version of the configuration and the change that can be undone",
		out:     settings.Status{}, status: http.StatusOK, serve: withSettings((*requestContext).getConfiguration)},
	{method: "POST", path: "/configuration/review", name: "reviewChange", group: "configuration",
		summary: "Compare a change of providers and models with the configuration, and change nothing",
		in:      settings.Draft{}, out: settings.Review{}, status: http.StatusOK,
		serve: withSettings(withBody((*requestContext).reviewChange))},
	{method: "POST", path: "/configuration/changes", name: "saveChange", group: "configuration",
		summary: "Change providers and models: the change is checked, kept and put in force, or nothing is done",
		in:      settings.Draft{}, out: settings.Review{}, status: http.StatusOK,
		serve: withSettings(withBody((*requestContext).saveChange))},
	{method: "POST", path: "/configuration/undo", name: "undoChange", group: "configuration",
		summary: "Take the last change back. Undoing twice makes it again",
		in:      Empty{}, out: settings.Review{}, status: http.StatusOK,
		serve: withSettings(withBody((*requestContext).undoChange))},
	{method: "POST", path: "/providers/{name}/test", name: "testProvider", group: "providers",
		summary: "Ask a provider with each of its keys for its list of models, which costs nothing",
		in:      Empty{}, out: List[settings.Check]{}, status: http.StatusOK,
		serve: withSettings(withBody((*requestContext).testProvider))},
}

// byAPI names programs where a change says who made it.
const byAPI = "API"

// withSettings returns a handler that calls serve if a gateway is running, and turns the errors of settings.Store into
// those of the API.
func withSettings(serve func(*requestContext) (any, error)) func(*requestContext) (any, error) {
	return func(c *requestContext) (any, error) {
		if c.Settings == nil {
			return nil, errNotRunning
		}
		out, err := serve(c)
		switch {
		case errors.Is(err, settings.ErrOff):
			err = dialogue.Refusal(http.StatusForbidden, "permission_denied", err.Error())
		case errors.Is(err, settings.ErrConflict):
			err = conflict("version", "configuration_changed", err.Error())
		case errors.Is(err, settings.ErrNoUndo):
			err = conflict("", "nothing_to_undo", err.Error())
		}
		return out, err
	}
}

// getConfiguration handles GET /configuration.
func (c *requestContext) getConfiguration() (any, error) { return c.Settings.Status() }

// reviewChange handles POST /configuration/review. A draft with mistakes is no error here: the reply lists them.
func (c *requestContext) reviewChange(d settings.Draft) (any, error) {
	return c.Settings.Review(d)
}

// saveChange handles POST /configuration/changes. A change that was not saved is an error that says why.
func (c *requestContext) saveChange(d settings.Draft) (any, error) {
	r, err := c.Settings.Save(c.r.Context(), d, byAPI)
	switch {
	case err != nil:
		return nil, err
	case r.Conflict:
		return nil, settings.ErrConflict
	case len(r.Mistakes) > 0:
		return nil, dialogue.Invalid("edits", r.Mistakes[0])
	}
	return r, nil
}

// undoChange handles POST /configuration/undo. If the earlier configuration cannot be put in force, the reply is an
// error that says why.
func (c *requestContext) undoChange(_ Empty) (any, error) {
	r, err := c.Settings.Undo(c.r.Context(), byAPI)
	if err == nil && len(r.Mistakes) > 0 {
		err = conflict("", "nothing_to_undo", "the earlier configuration cannot be put in force: "+r.Mistakes[0])
	}
	return r, err
}

// testProvider handles POST /providers/{name}/test.
func (c *requestContext) testProvider(_ Empty) (any, error) {
	checks, err := c.Settings.Test(c.r.Context(), c.r.PathValue("name"), nil)
	if errors.Is(err, state.ErrNotFound) {
		err = notFound("name", "there is no such provider")
	}
	return List[settings.Check]{Data: checks}, err
}
