package tokens

import (
	"context"

	"stagedoor/state"
	"stagedoor/state/identity"
)

// EraseUser erases what is known of a person, for good: the email address, the password, linked identities, passkeys,
// sessions, developer tokens and consents. Keys and grants are revoked, and apps disabled. The record stays with its
// username, because entries of the ledger and receipts belong to it and no other user may take them over. It is not
// changed any more.
//
// Erasing a user again changes nothing. It returns ErrNotFound if the user does not exist.
func (c *Client) EraseUser(ctx context.Context, id int64) (User, error) {
	return decide(ctx, c, nil, func(tx *state.Tx) (User, error) {
		u, ok := identity.FindUser(tx.View(), id)
		if !ok {
			return User{}, ErrNotFound
		}
		if !u.Erased.IsZero() {
			return userOf(u), nil
		}
		u = identity.User{ID: u.ID, Username: u.Username, Status: identity.UserDisabled, Epoch: u.Epoch + 1,
			Created: u.Created, Erased: tx.Now()}
		if err := eraseBelongings(tx, &u); err != nil {
			return User{}, err
		}
		return userOf(u), identity.PutUser(tx, u)
	})
}

// eraseBelongings removes or empties everything that belongs to a user. Sessions, tokens and links
// are removed. Apps, grants and keys stay as records that allow nothing and name no person, because
// other records refer to them.
func eraseBelongings(tx *state.Tx, u *identity.User) error {
	v, now := tx.View(), tx.Now()
	for _, s := range identity.ListSessions(v, u.ID) {
		identity.RemoveSession(tx, s.ID)
	}
	for _, d := range identity.ListDeveloperTokens(v, u.ID) {
		identity.RemoveDeveloperToken(tx, d.ID)
	}
	for _, x := range identity.ListExternalIdentities(v, u.ID) {
		identity.RemoveExternalIdentity(tx, x.ID)
	}
	for _, p := range identity.ListPasskeys(v, u.ID) {
		identity.RemovePasskey(tx, p.ID)
	}
	removeLinks(tx, func(l *identity.Link) bool { return l.User == u.ID })
	identity.RemoveConsents(tx, u.ID)
	for _, g := range identity.ListGrants(v, u.ID, 0) {
		g.Revoke(now, "the user was erased")
		if err := identity.PutGrant(tx, g); err != nil {
			return err
		}
	}
	for _, a := range identity.ListApps(v, u.ID) {
		a.Description, a.Logo = "", nil
		if a.Disabled.IsZero() {
			a.Disabled = now
		}
		if err := identity.PutApp(tx, a); err != nil {
			return err
		}
	}
	for _, k := range identity.ListKeys(v, identity.KeyFilter{User: u.Username}) {
		k.Name, k.AllowIPs = "erased", nil
		if k.Revoked.IsZero() {
			k.Revoked = now
		}
		if err := identity.PutKey(tx, k); err != nil {
			return err
		}
	}
	return nil
}
