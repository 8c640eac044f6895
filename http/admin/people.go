package admin

import (
	"context"
	"errors"
	"net/http"

	"stagedoor/actors/tokens"
	"stagedoor/providers/dialogue"
)

// Person is a user as the commands show it.
type Person struct {
	ID       int64  `json:"id"`
	Username string `json:"username"`
	Email    string `json:"email,omitempty"`
	Password string `json:"password,omitempty"` // only in requests
	Status   int    `json:"status,omitempty"`
	Admin    bool   `json:"admin,omitempty"`
	Created  int64  `json:"created_time,omitempty"`
}

// App is an OAuth app as the commands show it. The secret is present only after registration.
type App struct {
	ID          int64  `json:"id"`
	Owner       string `json:"owner"` // a username
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	RedirectURI string `json:"redirect_uri"`
	ClientID    string `json:"client_id"`
	Secret      string `json:"client_secret,omitempty"`
}

// DeveloperToken lets a user's programs register apps. The token is present only after creation.
type DeveloperToken struct {
	User  string `json:"user"` // a username
	Name  string `json:"name"`
	Token string `json:"token,omitempty"`
}

// People manages users, apps and developer tokens in this process. Client has the same methods for
// a running gateway.
type People struct{ Registry *tokens.Client }

// AddUser creates a user.
func (p People) AddUser(ctx context.Context, u Person) (Person, error) {
	made, err := p.Registry.CreateUser(ctx, tokens.NewUser{Username: u.Username, Email: u.Email, Password: u.Password,
		Admin: u.Admin})
	return personOf(made), operatorErrorOf(err)
}

// personOf returns a user as the commands show it.
func personOf(u tokens.User) Person {
	return Person{ID: u.ID, Username: u.Username, Email: u.Email, Status: u.Status, Admin: u.Admin,
		Created: u.Created.Unix()}
}

// AddApp registers an app and returns it with its secret.
func (p People) AddApp(ctx context.Context, a App) (App, error) {
	owner, err := p.Registry.UserByName(a.Owner)
	if err != nil {
		return App{}, operatorErrorOf(err)
	}
	secret, made, err := p.Registry.RegisterApp(ctx, tokens.NewApp{Owner: owner.ID, Name: a.Name,
		Description: a.Description, RedirectURI: a.RedirectURI})
	return App{ID: made.ID, Owner: owner.Username, Name: made.Name, Description: made.Description,
		RedirectURI: made.RedirectURI,
		ClientID:    made.ClientID, Secret: secret}, operatorErrorOf(err)
}

// AddDeveloperToken creates a developer token and returns it.
func (p People) AddDeveloperToken(ctx context.Context, t DeveloperToken) (DeveloperToken, error) {
	u, err := p.Registry.UserByName(t.User)
	if err != nil {
		return DeveloperToken{}, operatorErrorOf(err)
	}
	token, made, err := p.Registry.CreateDeveloperToken(ctx, u.ID, t.Name)
	return DeveloperToken{User: u.Username, Name: made.Name, Token: token}, operatorErrorOf(err)
}

// routes registers the routes of users, apps and developer tokens.
func (p People) routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /users", handleJSON(p.AddUser))
	mux.HandleFunc("POST /apps", handleJSON(p.AddApp))
	mux.HandleFunc("POST /developer-tokens", handleJSON(p.AddDeveloperToken))
}

// handleJSON returns a handler that decodes the body, calls do and writes its result.
func handleJSON[In, Out any](do func(context.Context, In) (Out, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in In
		if err := readBody(r, &in); err != nil {
			writeReply(w, nil, dialogue.Invalid("body", "must be a JSON object"))
			return
		}
		out, err := do(r.Context(), in)
		writeReply(w, out, err)
	}
}

// operatorError is an error with a text for the operator and the status of the response.
type operatorError struct {
	status int
	text   string
	cause  error
}

func (r *operatorError) Error() string { return r.text }

func (r *operatorError) Unwrap() error { return r.cause }

// operatorErrorOf returns the operator's error for an error of the registry. It returns other
// errors unchanged.
func operatorErrorOf(err error) error {
	switch {
	case errors.Is(err, tokens.ErrNotFound):
		return &operatorError{http.StatusNotFound, "there is no such user", err}
	case errors.Is(err, tokens.ErrExists):
		return &operatorError{http.StatusBadRequest, "the username is taken", err}
	case errors.Is(err, tokens.ErrInvalid):
		return &operatorError{http.StatusBadRequest, err.Error(), err}
	case errors.Is(err, tokens.ErrKeysForbidden):
		return &operatorError{http.StatusForbidden, err.Error(), err}
	case errors.Is(err, tokens.ErrTooMany):
		return &operatorError{http.StatusConflict, err.Error(), err}
	case errors.Is(err, tokens.ErrLimited):
		return &operatorError{http.StatusTooManyRequests, err.Error(), err}
	}
	return err
}

// envelope returns the error as the socket's client gets it.
func (r *operatorError) envelope() *dialogue.Error {
	e := dialogue.Refusal(r.status, "invalid_value", r.text)
	e.Cause = r.cause
	switch r.status {
	case http.StatusNotFound:
		e.Type, e.Code = dialogue.TypeNotFound, "not_found"
	case http.StatusConflict:
		e.Code = "too_many"
	case http.StatusTooManyRequests:
		e.Type, e.Code = dialogue.TypeRateLimit, "rate_limit_exceeded"
	}
	return e
}

// AddUser creates a user.
func (c *Client) AddUser(ctx context.Context, u Person) (made Person, err error) {
	return made, c.do(ctx, http.MethodPost, "/users", u, &made)
}

// AddApp registers an app and returns it with its secret.
func (c *Client) AddApp(ctx context.Context, a App) (made App, err error) {
	return made, c.do(ctx, http.MethodPost, "/apps", a, &made)
}

// AddDeveloperToken creates a developer token and returns it.
func (c *Client) AddDeveloperToken(ctx context.Context, t DeveloperToken) (made DeveloperToken, err error) {
	return made, c.do(ctx, http.MethodPost, "/developer-tokens", t, &made)
}
