package admin

import (
	"context"
	"errors"
	"net/http"

	"stagedoor/actors/tokens"
	"stagedoor/providers/dialogue"
)

// Person is a user as the commands see it.
type Person struct {
	ID       int64  `json:"id"`
	Username string `json:"username"`
	Email    string `json:"email,omitempty"`
	Password string `json:"password,omitempty"` // sent, never answered
	Status   int    `json:"status,omitempty"`
	Admin    bool   `json:"admin,omitempty"`
	Created  int64  `json:"created_time,omitempty"`
}

// App is an OAuth app as the commands see it. The secret is answered once.
type App struct {
	ID          int64  `json:"id"`
	Owner       string `json:"owner"` // a username
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	RedirectURI string `json:"redirect_uri"`
	ClientID    string `json:"client_id"`
	Secret      string `json:"client_secret,omitempty"`
}

// DeveloperToken lets a user's programs register apps. The token is answered
// once.
type DeveloperToken struct {
	User  string `json:"user"` // a username
	Name  string `json:"name"`
	Token string `json:"token,omitempty"`
}

// People are the users and what belongs to them, in this process.
type People struct{ Registry *tokens.Client }

// AddUser makes an account.
func (p People) AddUser(ctx context.Context, u Person) (Person, error) {
	made, err := p.Registry.CreateUser(ctx, tokens.NewUser{Username: u.Username, Email: u.Email, Password: u.Password, Admin: u.Admin})
	return personOf(made), refusal(err)
}

// Users lists all accounts.
func (p People) Users(context.Context) ([]Person, error) {
	all := []Person{}
	for _, u := range p.Registry.Users(0, 0) {
		all = append(all, personOf(u))
	}
	return all, nil
}

func personOf(u tokens.User) Person {
	return Person{ID: u.ID, Username: u.Username, Email: u.Email, Status: u.Status, Admin: u.Admin, Created: u.Created.Unix()}
}

// AddApp registers an app.
func (p People) AddApp(ctx context.Context, a App) (App, error) {
	owner, err := p.Registry.UserByName(a.Owner)
	if err != nil {
		return App{}, refusal(err)
	}
	secret, made, err := p.Registry.RegisterApp(ctx, tokens.NewApp{Owner: owner.ID, Name: a.Name, Description: a.Description, RedirectURI: a.RedirectURI})
	return App{ID: made.ID, Owner: owner.Username, Name: made.Name, Description: made.Description, RedirectURI: made.RedirectURI,
		ClientID: made.ClientID, Secret: secret}, refusal(err)
}

// AddDeveloperToken makes a developer token.
func (p People) AddDeveloperToken(ctx context.Context, t DeveloperToken) (DeveloperToken, error) {
	u, err := p.Registry.UserByName(t.User)
	if err != nil {
		return DeveloperToken{}, refusal(err)
	}
	token, made, err := p.Registry.CreateDeveloperToken(ctx, u.ID, t.Name)
	return DeveloperToken{User: u.Username, Name: made.Name, Token: token}, refusal(err)
}

func (p People) routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /users", func(w http.ResponseWriter, r *http.Request) {
		all, err := p.Users(r.Context())
		answer(w, all, err)
	})
	mux.HandleFunc("POST /users", post(p.AddUser))
	mux.HandleFunc("POST /apps", post(p.AddApp))
	mux.HandleFunc("POST /developer-tokens", post(p.AddDeveloperToken))
}

// post serves what takes a thing and answers with one.
func post[In, Out any](do func(context.Context, In) (Out, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in In
		if err := readBody(r, &in); err != nil {
			answer(w, nil, dialogue.Invalid("body", "must be a JSON object"))
			return
		}
		out, err := do(r.Context(), in)
		answer(w, out, err)
	}
}

// refused is an error in words for the operator.
type refused struct {
	status int
	text   string
	cause  error
}

func (r *refused) Error() string { return r.text }

func (r *refused) Unwrap() error { return r.cause }

// refusal puts the registry's errors into words.
func refusal(err error) error {
	switch {
	case errors.Is(err, tokens.ErrNotFound):
		return &refused{http.StatusNotFound, "there is no such user", err}
	case errors.Is(err, tokens.ErrExists):
		return &refused{http.StatusBadRequest, "the username is taken", err}
	case errors.Is(err, tokens.ErrInvalid):
		return &refused{http.StatusBadRequest, err.Error(), err}
	case errors.Is(err, tokens.ErrKeysForbidden):
		return &refused{http.StatusForbidden, err.Error(), err}
	case errors.Is(err, tokens.ErrTooMany):
		return &refused{http.StatusConflict, err.Error(), err}
	case errors.Is(err, tokens.ErrLimited):
		return &refused{http.StatusTooManyRequests, err.Error(), err}
	}
	return err
}

// envelope is what a client of the socket is told.
func (r *refused) envelope() *dialogue.Error {
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

// AddUser makes an account.
func (c *Client) AddUser(ctx context.Context, u Person) (made Person, err error) {
	return made, c.do(ctx, http.MethodPost, "/users", u, &made)
}

// Users lists all accounts.
func (c *Client) Users(ctx context.Context) (all []Person, err error) {
	return all, c.do(ctx, http.MethodGet, "/users", nil, &all)
}

// AddApp registers an app.
func (c *Client) AddApp(ctx context.Context, a App) (made App, err error) {
	return made, c.do(ctx, http.MethodPost, "/apps", a, &made)
}

// AddDeveloperToken makes a developer token.
func (c *Client) AddDeveloperToken(ctx context.Context, t DeveloperToken) (made DeveloperToken, err error) {
	return made, c.do(ctx, http.MethodPost, "/developer-tokens", t, &made)
}
