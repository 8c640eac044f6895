package adminapi

import (
	"errors"
	"net/http"

	"stagedoor/actors/tokens"
	"stagedoor/state/identity"
)

// invitationRoutes make links with which people make an account. The link is in the reply that makes it, and nowhere
// else.
var invitationRoutes = []route{
	{method: "GET", path: "/invitations", name: "listInvitations", group: "users", summary: "List open invitations",
		query: []param{limitParam, afterParam},
		out:   List[Invitation]{}, status: http.StatusOK, serve: (*requestContext).listInvitations},
	{method: "POST", path: "/invitations", name: "createInvitation", group: "users",
		summary: "Make a link with which a person makes an account, once and within 7 days; it is shown once",
		in:      NewInvitation{}, out: InvitationLink{}, status: http.StatusCreated,
		serve: withBody((*requestContext).createInvitation)},
	{method: "DELETE", path: "/invitations/{id}", name: "withdrawInvitation", group: "users",
		summary: "End an invitation", out: Invitation{}, status: http.StatusOK,
		serve: (*requestContext).withdrawInvitation},
}

// invitationOf returns an invitation as the API shows it. Its secret is not stored.
func invitationOf(l *identity.Link) Invitation {
	return Invitation{ID: l.ID, Username: l.Username, Email: l.Email, Admin: l.Admin, Group: l.Group, By: l.By,
		Created: l.Created, Expires: l.Expires}
}

// listInvitations handles GET /invitations.
func (c *requestContext) listInvitations() (any, error) {
	some, err := pageOf(c, c.Registry.Invitations(), func(l *identity.Link) string { return l.ID })
	return List[Invitation]{Data: convertAll(some.Data, invitationOf), Next: some.Next}, err
}

// createInvitation handles POST /invitations.
func (c *requestContext) createInvitation(in NewInvitation) (any, error) {
	// The command works on the data directory without a gateway, so there is no address at which the link could be
	// opened.
	if c.Link == nil {
		return nil, errNoGateway()
	}
	secret, l, err := c.Registry.Invite(c.r.Context(),
		tokens.Invitation{Username: in.Username, Email: in.Email, Admin: in.Admin, Group: in.Group})
	switch {
	case errors.Is(err, tokens.ErrExists):
		return nil, conflict("username", "already_exists", "username: is taken")
	case err != nil:
		return nil, err
	}
	return InvitationLink{Invitation: invitationOf(&l), URL: c.Link(secret)}, nil
}

// withdrawInvitation handles DELETE /invitations/{id} and returns the invitation as it was.
func (c *requestContext) withdrawInvitation() (any, error) {
	l, err := c.Registry.WithdrawInvitation(c.r.Context(), c.r.PathValue("id"))
	if err != nil {
		return nil, describeNotFound(err, "id", "there is no such invitation")
	}
	return invitationOf(&l), nil
}
