package adminapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"stagedoor/actors/ledger"
	"stagedoor/actors/tokens"
	httpflow "stagedoor/http/flow"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/work"
)

// userRoutes change users. Disabling a user can be taken back, and erasing one cannot.
var userRoutes = []route{
	{method: "GET", path: "/users", name: "listUsers", group: "users", summary: "List users by id", out: List[User]{},
		status: http.StatusOK,
		query: []param{{name: "username", doc: "only the user of this name, whatever its case"}, limitParam,
			afterParam}, serve: (*requestContext).listUsers},
	{method: "POST", path: "/users", name: "createUser", group: "users", summary: "Create a user", in: NewUser{},
		out:    CreatedUser{},
		status: http.StatusCreated, serve: withBody((*requestContext).createUser)},
	{method: "GET", path: "/users/{id}", name: "getUser", group: "users", summary: "Get a user", out: User{},
		status: http.StatusOK, serve: withID((*requestContext).getUser)},
	{method: "PATCH", path: "/users/{id}", name: "updateUser", group: "users", summary: "Change a user",
		in: UserChange{}, out: User{},
		status: http.StatusOK, serve: withBody((*requestContext).updateUser)},
	{method: "DELETE", path: "/users/{id}", name: "disableUser", group: "users",
		summary: "Disable a user: sessions end, and keys and apps are refused until the status is 1 again. The " +
			"record stays, because charges refer to it", out: User{}, status: http.StatusOK,
		serve: (*requestContext).disableUser},
	{method: "POST", path: "/users/{id}/developer-tokens", name: "createDeveloperToken", group: "users",
		summary: "Create a token with which programs of a user register apps; it is shown once",
		in:      NewDeveloperToken{}, out: DeveloperToken{}, status: http.StatusCreated,
		serve: withIDAndBody((*requestContext).createDeveloperToken)},
	{method: "POST", path: "/users/{id}/erase", name: "eraseUser", group: "users",
		summary: "Erase what is stored of a user, for good. The name stays with the ledger and the receipts",
		in:      Empty{}, out: ErasedUser{}, status: http.StatusOK, serve: withIDAndBody((*requestContext).eraseUser)},
	{method: "POST", path: "/users/{id}/link", name: "createLink", group: "users",
		summary: "Make a link with which a user chooses a password and is signed in, once and within 24 hours",
		in:      Empty{}, out: Link{}, status: http.StatusCreated, serve: withIDAndBody((*requestContext).createLink)},
	{method: "DELETE", path: "/users/{id}/sessions", name: "endSessions", group: "users",
		summary: "End all sessions of a user", out: User{},
		status: http.StatusOK, serve: withID((*requestContext).endSessions)},
}

const noUser = "there is no such user"

// userView returns a user as the API shows it, with balance, spending and group. The balance is asked of the
// account's actor, which knows holds that are not written yet, so a list of users asks once for each of them.
func (c *requestContext) userView(u tokens.User) (User, error) {
	b, err := c.balance(u.Username)
	v := c.State.View()
	// The registry's user has no ceiling, which the state has. The record exists, since the registry has just found
	// it.
	kept, _ := identity.FindUser(v, u.ID)
	out := User{
		ID:           u.ID,
		Username:     u.Username,
		Email:        u.Email,
		Status:       u.Status,
		Admin:        u.Admin,
		Erased:       timeOrNull(u.Erased),
		Created:      u.Created.Unix(),
		Seen:         timeOrNull(u.Seen),
		SecondFactor: u.SecondFactor,
		Balance:      b,
		Ceiling:      ceilingOf(&kept.Ceiling),
		Spent:        spentBy(v, budget.Scope{Kind: budget.UserScope, ID: u.Username}),
	}
	if g, ok := identity.FindGroup(v, kept.Group); ok {
		out.Group = &GroupName{ID: g.ID, Name: g.Name}
	}
	return out, describeNotFound(err, "id", noUser)
}

// balance returns the balance of an account. It includes holds that are only in memory so far.
func (c *requestContext) balance(account string) (Balance, error) {
	b, err := c.Ledger.Balance(c.r.Context(), account)
	return balanceOf(b), err
}

// balanceOf returns a balance as the API shows it.
func balanceOf(b ledger.Balance) Balance {
	return Balance{Credits: b.Credits, Spent: b.Spent, Held: b.Held, Available: b.Available()}
}

// listUsers handles GET /users. It reads one user more than the page holds, to know whether there
// is a next page.
func (c *requestContext) listUsers() (any, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	after, err := c.number("after")
	if err != nil {
		return nil, err
	}
	if _, err := c.Registry.User(after); after != 0 && err != nil {
		return nil, errNoPage()
	}
	var all []tokens.User
	if name := c.query.Get("username"); name != "" {
		if u, err := c.Registry.UserByName(name); err == nil && u.ID > after {
			all = append(all, u)
		}
	} else {
		all = c.Registry.Users(after, limit+1)
	}
	l := List[User]{Data: []User{}}
	for i, u := range all {
		if i == limit {
			l.Next = new(strconv.FormatInt(l.Data[limit-1].ID, 10))
			break
		}
		view, err := c.userView(u)
		if err != nil {
			return nil, err
		}
		l.Data = append(l.Data, view)
	}
	return l, nil
}

// createUser handles POST /users. A generated password is returned only here. One that the caller has chosen is
// never returned.
func (c *requestContext) createUser(in NewUser) (any, error) {
	if in.Username == "" {
		return nil, dialogue.Missing("username")
	}
	made := in.Password == nil
	if made {
		password, err := tokens.NewPassword(c.Random)
		if err != nil {
			return nil, err
		}
		in.Password = &password
	}
	u, err := c.Registry.CreateUser(c.r.Context(), tokens.NewUser{Username: in.Username, Email: in.Email,
		Password: *in.Password, Admin: in.Admin})
	if errors.Is(err, tokens.ErrExists) {
		return nil, conflict("username", "already_exists", "username: is taken")
	}
	if err != nil {
		return nil, err
	}
	view, err := c.userView(u)
	out := CreatedUser{User: view}
	if made {
		out.Password = *in.Password
	}
	return out, err
}

// getUser handles GET /users/{id}.
func (c *requestContext) getUser(id int64) (any, error) {
	u, err := c.Registry.User(id)
	if err != nil {
		return nil, describeNotFound(err, "id", noUser)
	}
	return c.userView(u)
}

// updateUser handles PATCH /users/{id}. Members that the body leaves out stay as they are.
func (c *requestContext) updateUser(in UserChange) (any, error) {
	ceiling, err := ceilingChange(in.Ceiling)
	if err != nil {
		return nil, err
	}
	return c.changeUser(tokens.UserChange{Email: in.Email, Password: in.Password, Status: in.Status, Admin: in.Admin,
		Ceiling: ceiling, ResetSecondFactor: in.ResetSecondFactor})
}

// disableUser handles DELETE /users/{id}.
func (c *requestContext) disableUser() (any, error) {
	return c.changeUser(tokens.UserChange{Status: new(tokens.StatusDisabled)})
}

// changeUser changes the user in the path and returns it.
func (c *requestContext) changeUser(change tokens.UserChange) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	u, err := c.Registry.UpdateUser(c.r.Context(), id, change)
	if err != nil {
		return nil, describeNotFound(err, "id", noUser)
	}
	return c.userView(u)
}

// createDeveloperToken handles POST /users/{id}/developer-tokens and returns the token, which cannot be read later.
func (c *requestContext) createDeveloperToken(id int64, in NewDeveloperToken) (any, error) {
	u, err := c.Registry.User(id)
	if err != nil {
		return nil, describeNotFound(err, "id", noUser)
	}
	token, made, err := c.Registry.CreateDeveloperToken(c.r.Context(), u.ID, in.Name)
	if err != nil {
		return nil, describeNotFound(err, "id", "the user is disabled")
	}
	return DeveloperToken{ID: made.ID, User: u.Username, Name: made.Name, Token: token}, nil
}

// eraseUser handles POST /users/{id}/erase.
func (c *requestContext) eraseUser(id int64, _ Empty) (any, error) {
	u, left, err := c.Erase(c.r.Context(), id)
	if err != nil {
		return nil, describeNotFound(err, "id", noUser)
	}
	view, err := c.userView(u)
	return ErasedUser{User: view, Remaining: left}, err
}

// Erase erases what is stored of a user, except what the ledger needs. It ends the account first, so that nothing new
// is stored meanwhile, and then erases the stored records. It returns how many requests, responses and video jobs are
// still at work. The uploads are erased only if there are none, because work in progress may still need or make them:
// call Erase again when they have ended. A call that failed in between can also be repeated, and continues.
func (a *API) Erase(ctx context.Context, user int64) (u tokens.User, remaining int, err error) {
	if u, err = a.Registry.EraseUser(ctx, user); err != nil {
		return u, 0, err
	}
	owner := state.OwnerOf("", u.Username)
	left, err := work.EraseOwner(ctx, a.State, owner)
	if err != nil {
		return u, 0, err
	}
	left += a.countInFlight(ctx, u.Username)
	// A job at work still needs its uploads, and a request in flight may make a picture.
	if a.Forget != nil && left == 0 {
		err = a.Forget(string(owner))
	}
	return u, left, err
}

// countInFlight returns the number of requests of a user that clients wait for, on all gateways. The state has the
// responses in the background and the jobs. A gateway that does not answer counts as one, because it may have one.
func (a *API) countInFlight(ctx context.Context, user string) (n int) {
	if a.Overview == nil { // no gateway runs
		return 0
	}
	active, _ := a.Overview.All(ctx, httpflow.Filter{User: user, Limit: httpflow.MaxLimit})
	for i := range active.Data {
		if !active.Data[i].Background {
			n++
		}
	}
	for _, node := range active.Load.Nodes {
		if !node.Answers {
			n++
		}
	}
	return n
}

// createLink returns a one-time link for a user.
func (c *requestContext) createLink(id int64, _ Empty) (any, error) {
	if c.Link == nil {
		return nil, errNoGateway()
	}
	secret, l, err := c.Registry.ResetLink(c.r.Context(), id, "")
	switch {
	case errors.Is(err, tokens.ErrUserDisabled):
		return nil, conflict("id", "user_disabled", "the user is disabled")
	case err != nil:
		return nil, describeNotFound(err, "id", noUser)
	}
	return Link{URL: c.Link(secret), Expires: l.Expires}, nil
}

// errNoGateway returns the error for a link where no gateway runs. Its pages would have to serve the link.
func errNoGateway() error {
	return conflict("", "not_running", "no gateway runs on this data directory: start it, because a link is used there")
}

// endSessions handles DELETE /users/{id}/sessions.
func (c *requestContext) endSessions(id int64) (any, error) {
	if err := c.Registry.EndSessions(c.r.Context(), id); err != nil {
		return nil, describeNotFound(err, "id", noUser)
	}
	u, err := c.Registry.User(id)
	if err != nil {
		return nil, err
	}
	return c.userView(u)
}
