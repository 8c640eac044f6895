package oauth

import (
	"errors"
	"mime"
	"net/http"

	"github.com/go-json-experiment/json"

	"stagedoor/actors/tokens"
	"stagedoor/http/auth"
	"stagedoor/http/envelope"
	"stagedoor/providers/fields"
)

// appEnvelope is the response of app registration. The form is that of the gateway's own contract and not of RFC
// 7591 (dynamic registration). Errors have it, too.
type appEnvelope struct {
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

// registration is the body that a developer sends. An absent field and null mean the same.
type registration struct {
	Name        *string `json:"name"`
	Description *string `json:"description"`
	RedirectURI *string `json:"redirect_uri"`
}

// registerApp handles POST /api/oauth_apps: it registers an app for the owner of a developer token
// and returns the app's credentials. The secret is shown only here.
func (s *Service) registerApp(w http.ResponseWriter, r *http.Request) {
	owner, err := s.developer(r)
	if err != nil {
		s.writeRegistrationError(w, r, err)
		return
	}
	n, err := readRegistration(w, r)
	if err != nil {
		s.writeRegistrationError(w, r, err)
		return
	}
	n.Owner = owner.ID
	secret, a, err := s.options.Registry.RegisterApp(auth.AsUser(r, owner.Username).Context(), n)
	if err != nil {
		s.writeRegistrationError(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, appEnvelope{Success: true, Data: &app{ID: a.ID, Name: a.Name, ClientID: a.ClientID,
		ClientSecret: secret,
		RedirectURI:  a.RedirectURI, Created: a.Created.Unix()}})
}

// developer returns the user of the request's developer token. Access tokens of apps get their own error,
// because developers confuse the two. The header WWW-Authenticate says what is wrong with the token, in the
// words of RFC 6750 3.
func (s *Service) developer(r *http.Request) (tokens.User, error) {
	token, err := bearer(r)
	if err != nil {
		f := *protocolErrorOf(err)
		f.status, f.description, f.challenge = http.StatusUnauthorized, "send a developer token in the header "+
			"Authorization: Bearer TOKEN", `Bearer realm="oauth"`
		return tokens.User{}, &f
	}
	u, err := s.options.Registry.Developer(token)
	switch {
	case err == nil:
		return u, nil
	case errors.Is(err, tokens.ErrKeysForbidden):
		return tokens.User{}, &protocolError{status: http.StatusForbidden,
			description: "the user of this developer token may not register apps",
			challenge:   `Bearer realm="oauth", error="insufficient_scope", scope="` + tokens.ScopeDeveloper + `"`}
	}
	if _, err := s.options.Registry.Lookup(token); err == nil {
		return tokens.User{}, &protocolError{status: http.StatusForbidden,
			description: "an app's access token cannot register apps: a developer token is needed",
			challenge:   `Bearer realm="oauth", error="insufficient_scope", scope="` + tokens.ScopeDeveloper + `"`}
	}
	return tokens.User{}, &protocolError{status: http.StatusUnauthorized,
		description: tokens.ErrNoDeveloper.Description,
		challenge:   `Bearer realm="oauth", error="invalid_token"`}
}

// readRegistration reads and checks the body. It bounds the JSON before decoding it. Unknown members are
// ignored.
func readRegistration(w http.ResponseWriter, r *http.Request) (tokens.NewApp, error) {
	if h := r.Header.Get("Content-Type"); h != "" {
		if media, _, err := mime.ParseMediaType(h); err != nil || media != "application/json" {
			return tokens.NewApp{}, &protocolError{status: http.StatusUnsupportedMediaType,
				description: "the body must be application/json"}
		}
	}
	body, err := readBody(w, r)
	if err != nil {
		return tokens.NewApp{}, err
	}
	if fault := fields.Explain(body); fault.Flaw.OverLimit() {
		return tokens.NewApp{}, &protocolError{status: http.StatusBadRequest, description: "the body " + fault.Rule()}
	}
	var in registration
	if err := json.Unmarshal(body, &in); err != nil {
		return tokens.NewApp{}, unreadable(err)
	}
	if in.Name == nil {
		return tokens.NewApp{}, &protocolError{status: http.StatusBadRequest, description: "name is missing"}
	}
	if in.RedirectURI == nil {
		return tokens.NewApp{}, &protocolError{status: http.StatusBadRequest, description: "redirect_uri is missing"}
	}
	n := tokens.NewApp{Name: *in.Name, RedirectURI: *in.RedirectURI}
	if in.Description != nil {
		n.Description = *in.Description
	}
	return n, nil
}

// unreadable returns the error for a body that cannot be decoded. It names the field if a field has
// the wrong type.
func unreadable(err error) error {
	f := &protocolError{status: http.StatusBadRequest, description: "the body must be a JSON object with name, " +
		"description and redirect_uri"}
	var wrong *json.SemanticError
	if errors.As(err, &wrong) && wrong.JSONPointer != "" {
		f.description = wrong.JSONPointer.LastToken() + " must be a string"
	}
	return f
}

// writeRegistrationError writes err in the envelope of app registration.
func (s *Service) writeRegistrationError(w http.ResponseWriter, r *http.Request, err error) {
	var broken *tokens.FieldError
	var full *tokens.TooMany
	f := *protocolErrorOf(err)
	switch {
	case errors.As(err, &broken):
		f = protocolError{status: http.StatusBadRequest, description: broken.Error()}
	case errors.As(err, &full):
		f = protocolError{status: http.StatusConflict, description: full.Error()}
	case errors.Is(err, tokens.ErrKeysForbidden):
		f = protocolError{status: http.StatusForbidden, description: tokens.ErrKeysForbidden.Description}
	case errors.Is(err, tokens.ErrNotFound): // the owner was disabled after the token had been checked
		f = protocolError{status: http.StatusUnauthorized, description: tokens.ErrNoDeveloper.Description}
	}
	if f.status >= http.StatusInternalServerError {
		s.options.Logger.Error("register an app", "cause", err)
	}
	if f.challenge != "" {
		w.Header().Set("WWW-Authenticate", f.challenge)
	}
	envelope.SetRetryAfter(w.Header(), f.retryAfter)
	writeJSON(w, f.status, appEnvelope{Message: f.description})
}
