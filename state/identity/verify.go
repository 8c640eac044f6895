package identity

import (
	"context"
	"fmt"

	"stagedoor/state"
)

// verify reports records that refer to a missing record. Users are never removed. An app that was deleted is removed
// after its grants and consents, and grants are removed when they expire, after their tokens.
func verify(_ context.Context, v *state.Verifier) error {
	view := v.State.View()
	user := func(what string, id int64) {
		if _, ok := FindUser(view, id); !ok {
			v.Report("%s belongs to user %d, who does not exist", what, id)
		}
	}
	app := func(what string, id int64) {
		if _, ok := FindApp(view, id); !ok {
			v.Report("%s belongs to app %d, which does not exist", what, id)
		}
	}
	for u := range users.All(view) {
		if _, ok := FindGroup(view, u.Group); !ok && u.Group != 0 {
			v.Report("user %d is in group %d, which does not exist", u.ID, u.Group)
		}
	}
	for a := range apps.All(view) {
		user(fmt.Sprintf("app %d", a.ID), a.Owner)
	}
	for s := range sessions.All(view) {
		user("session "+s.ID, s.User)
	}
	for l := range links.All(view) {
		if l.User != 0 {
			user("link "+l.ID, l.User)
		}
	}
	for p := range passkeys.All(view) {
		user("passkey "+p.ID, p.User)
	}
	for x := range externals.All(view) {
		user("external identity "+x.ID, x.User)
	}
	for d := range developers.All(view) {
		user("developer token "+d.ID, d.User)
	}
	for g := range grants.All(view) {
		user("grant "+g.ID, g.User)
		app("grant "+g.ID, g.App)
	}
	for c := range consents.All(view) {
		what := fmt.Sprintf("the consent of user %d for app %d", c.User, c.App)
		user(what, c.User)
		app(what, c.App)
	}
	for a := range accessTokens.All(view) {
		if _, ok := FindGrant(view, a.Grant); !ok && view.Now().Before(a.Expires) {
			v.Report("access token %s belongs to grant %s, which does not exist", a.ID, a.Grant)
		}
	}
	return nil
}
