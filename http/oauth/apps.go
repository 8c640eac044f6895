package oauth

import (
	"errors"
	"mime"
	"net/http"

	"github.com/go-json-experiment/json"

	"stagedoor/actors/tokens"
	"stagedoor/providers/fields"
)

// envelope is the answer of application registration (imagegen-and-oauth.md
// 2.2).
type envelope struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
	Data    *app   `json:"data,omitempty"`
}

type app struct {
	ID           int64  `json:"id"`
	Name         string `json:"name"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	RedirectURI  string `json:"redirect_uri"`
	Created      int64  `json:"created_time"`
}

// registration is what a developer sends. Absent and null are the same.
type registration struct {
	Name        *string `json:"name"`
	Description *string `json:"description"`
	RedirectURI *string `json:"redirect_uri"`
}

// registerApp makes an app for the user of a developer token
// (imagegen-and-oauth.md 4.3).
func (s *Service) registerApp(w http.ResponseWriter, r *http.Request) {
	owner, err := s.developer(r)
	if err != nil {
		s.refuseRegistration(w, r, err)
		return
	}
	n, err := readRegistration(w, r)
	if err != nil {
		s.refuseRegistration(w, r, err)
		return
	}
	n.Owner = owner.ID
	secret, a, err := s.options.Registry.RegisterApp(r.Context(), n)
	if err != nil {
		s.refuseRegistration(w, r, err)
		return
	}
	answer(w, http.StatusOK, envelope{Success: true, Data: &app{ID: a.ID, Name: a.Name, ClientID: a.ClientID, ClientSecret: secret,
		RedirectURI: a.RedirectURI, Created: a.Created.Unix()}})
}

// developer is the user of the developer token a request has.
func (s *Service) developer(r *http.Request) (tokens.User, error) {
	token, err := bearer(r)
	if err != nil {
		f := *refusalOf(err)
		f.status, f.text, f.challenge = http.StatusUnauthorized, "send a developer token in the header Authorization: Bearer TOKEN", `Bearer realm="oauth"`
		return tokens.User{}, &f
	}
	u, err := s.options.Registry.Developer(token)
	switch {
	case err == nil:
		return u, nil
	case errors.Is(err, tokens.ErrKeysForbidden):
		return tokens.User{}, &refusal{status: http.StatusForbidden, text: "the user of this developer token may not register apps",
			challenge: `Bearer realm="oauth", error="insufficient_scope", scope="` + tokens.ScopeDeveloper + `"`}
	}
	if _, err := s.options.Registry.Lookup(token); err == nil {
		return tokens.User{}, &refusal{status: http.StatusForbidden, text: "an app's access token cannot register apps: a developer token is needed",
			challenge: `Bearer realm="oauth", error="insufficient_scope", scope="` + tokens.ScopeDeveloper + `"`}
	}
	return tokens.User{}, &refusal{status: http.StatusUnauthorized, text: tokens.ErrNoDeveloper.Description,
		challenge: `Bearer realm="oauth", error="invalid_token"`}
}

func readRegistration(w http.ResponseWriter, r *http.Request) (tokens.NewApp, error) {
	if h := r.Header.Get("Content-Type"); h != "" {
		if media, _, err := mime.ParseMediaType(h); err != nil || media != "application/json" {
			return tokens.NewApp{}, &refusal{status: http.StatusUnsupportedMediaType, text: "the body must be application/json"}
		}
	}
	body, err := readBody(w, r)
	if err != nil {
		return tokens.NewApp{}, err
	}
	if fault := fields.Explain(body); fault.Flaw.OverLimit() {
		return tokens.NewApp{}, &refusal{status: http.StatusBadRequest, text: "the body " + fault.Rule()}
	}
	var in registration
	if err := json.Unmarshal(body, &in); err != nil {
		return tokens.NewApp{}, unreadable(err)
	}
	if in.Name == nil {
		return tokens.NewApp{}, &refusal{status: http.StatusBadRequest, text: "name is missing"}
	}
	if in.RedirectURI == nil {
		return tokens.NewApp{}, &refusal{status: http.StatusBadRequest, text: "redirect_uri is missing"}
	}
	n := tokens.NewApp{Name: *in.Name, RedirectURI: *in.RedirectURI}
	if in.Description != nil {
		n.Description = *in.Description
	}
	return n, nil
}

// unreadable names the field of the wrong type, if it is that.
func unreadable(err error) error {
	f := &refusal{status: http.StatusBadRequest, text: "the body must be a JSON object with name, description and redirect_uri"}
	var wrong *json.SemanticError
	if errors.As(err, &wrong) && wrong.JSONPointer != "" {
		f.text = wrong.JSONPointer.LastToken() + " must be a string"
	}
	return f
}

// refuseRegistration answers in the envelope of 2.2.
func (s *Service) refuseRegistration(w http.ResponseWriter, r *http.Request, err error) {
	var broken *tokens.FieldError
	var full *tokens.TooMany
	f := *refusalOf(err)
	switch {
	case errors.As(err, &broken):
		f = refusal{status: http.StatusBadRequest, text: broken.Error()}
	case errors.As(err, &full):
		f = refusal{status: http.StatusConflict, text: full.Error()}
	case errors.Is(err, tokens.ErrNotFound): // the owner was disabled after the token had been checked
		f = refusal{status: http.StatusUnauthorized, text: tokens.ErrNoDeveloper.Description}
	}
	if f.status >= http.StatusInternalServerError {
		s.options.Logger.Error("register an app", "cause", err)
	}
	if f.challenge != "" {
		w.Header().Set("WWW-Authenticate", f.challenge)
	}
	setRetry(w.Header(), f.retry)
	answer(w, f.status, envelope{Message: f.text})
}
