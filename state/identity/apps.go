package identity

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// App is a registered OAuth client.
type App struct {
	ID       int64      `json:"id"` // 1, 2, ...; never reused
	ClientID string     `json:"client_id"`
	Secret   state.Hash `json:"secret"`
	// Previous is the secret before the last rotation. It is accepted until PreviousUntil, so that
	// a client can be updated without an interruption.
	Previous      state.Hash `json:"previous,omitzero"`
	PreviousUntil time.Time  `json:"previous_until,omitzero"`
	// SecretEnd and PreviousEnd are the last characters of the secrets, by which their owner recognises them. Both are
	// characters of the checksum. SecretUsed and PreviousUsed say when each last brought tokens, to the hour.
	SecretEnd    string    `json:"secret_end,omitempty"`
	PreviousEnd  string    `json:"previous_end,omitempty"`
	SecretUsed   time.Time `json:"secret_used,omitzero"`
	PreviousUsed time.Time `json:"previous_used,omitzero"`

	Owner       int64     `json:"owner"`
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"`
	RedirectURI string    `json:"redirect_uri"` // the first address; all are compared byte by byte
	MoreURIs    []string  `json:"more_redirect_uris,omitempty"`
	Logo        []byte    `json:"logo,omitempty"` // a small PNG that this program has encoded
	Created     time.Time `json:"created"`
	Disabled    time.Time `json:"disabled,omitzero"` // zero if the app is enabled
	// Gone is zero unless the app was deleted. It is the time at which the last grant or consent that refers to the app
	// expires. The record is removed then.
	Gone time.Time `json:"gone,omitzero"`
}

// RedirectURIs returns all addresses to which a browser may be sent with a code.
func (a *App) RedirectURIs() []string {
	if a.RedirectURI == "" {
		return nil // the app was deleted
	}
	return append([]string{a.RedirectURI}, a.MoreURIs...)
}

// LogValue returns only the ids, so that hashes and addresses do not reach the logs.
func (a App) LogValue() slog.Value {
	return slog.GroupValue(slog.Int64("id", a.ID), slog.String("client_id", a.ClientID))
}

// Authenticates reports whether h is the hash of a secret that is valid at now. Its duration does
// not depend on the result.
func (a *App) Authenticates(h state.Hash, now time.Time) bool {
	current, previous := a.Secret.Equal(h), a.Previous.Equal(h)
	return current || (previous && now.Before(a.PreviousUntil))
}

// check refuses a record that could not be used or found.
func (a *App) check() error {
	if state.CheckID(a.ClientID) != nil || a.Secret == (state.Hash{}) || (a.RedirectURI == "" && a.Gone.IsZero()) {
		return fmt.Errorf("%w: app %d", state.ErrInvalid, a.ID)
	}
	return nil
}

const (
	byClient     = "client"
	byOwningUser = "owner"
)

// apps holds the OAuth apps. A deleted app stays until its last grant has expired (Gone). Secrets, the description and
// the logo are hidden in the audit log. byClient finds an app by its client_id and byOwningUser lists those of a user.
var apps = state.Table[App]{
	Name:    journal.App,
	ID:      func(a *App) string { return state.NumberID(a.ID) },
	Expires: func(a *App) time.Time { return a.Gone },
	Audit: &state.Audit[App]{Kind: "app", Describe: func(v state.View, a *App) (state.Target, state.Fields) {
		u, _ := FindUser(v, a.Owner)
		return state.Target{ID: strconv.FormatInt(a.ID, 10), Name: a.Name}, state.Fields{"name": a.Name,
			"description": state.Hidden(a.Description), "owner": u.Username, "redirect_uri": a.RedirectURI,
			"more_redirect_uris": a.MoreURIs, "logo": state.Hidden(a.Logo), "disabled": a.Disabled,
			"deleted": !a.Gone.IsZero(), "secret": state.Hidden(a.Secret[:]), "previous_secret_until": a.PreviousUntil}
	}},
	Indexes: map[string]state.Index[App]{
		byClient:     {Unique: true, Key: func(a *App) []byte { return state.TextKey(a.ClientID) }},
		byOwningUser: {Key: func(a *App) []byte { return state.NumberKey(a.Owner) }},
	},
}

// FindApp returns the app with this id, also if it is disabled or deleted.
func FindApp(v state.View, id int64) (App, bool) { return apps.Get(v, state.NumberID(id)).Record() }

// FindAppByClientID returns the app with this client_id, also if it is disabled or deleted.
func FindAppByClientID(v state.View, clientID string) (App, bool) {
	return apps.First(v, byClient, state.TextKey(clientID)).Record()
}

// ListApps returns the apps of an owner that were not deleted, oldest first. An owner of 0 selects all apps.
func ListApps(v state.View, owner int64) []App {
	return slices.DeleteFunc(listAllApps(v, owner), func(a App) bool { return !a.Gone.IsZero() })
}

// CountApps returns how many apps of an owner are stored, with those that were deleted and are still referred to.
func CountApps(v state.View, owner int64) int { return len(listAllApps(v, owner)) }

// listAllApps returns the apps of an owner, including deleted ones. The owner 0 stands for all.
func listAllApps(v state.View, owner int64) []App {
	if owner == 0 {
		return apps.List(v, state.ByID, nil)
	}
	return apps.List(v, byOwningUser, state.NumberKey(owner))
}

// lastAppName is the fact that holds the highest id of an app. The log of requests and the audit log name apps by their
// ids, so the id of an app that was deleted is not used again.
const lastAppName = "app/last"

// AddApp stores a new app and returns it with its id. The number of a deleted app is not used again, because tokens and
// entries of the audit may still name it. The error is state.ErrInvalid or state.ErrExists, see PutApp.
func AddApp(tx *state.Tx, a App) (App, error) {
	a.ID = int64(tx.View().NumberFact(lastAppName))
	if last := apps.Last(tx.View()); last != nil {
		a.ID = max(a.ID, last.Rec.ID) // apps that were made before there was the fact
	}
	a.ID++
	a.Created = tx.Now()
	if err := PutApp(tx, a); err != nil {
		return App{}, err
	}
	return a, tx.PutNumberFact(lastAppName, uint64(a.ID))
}

// DeleteApp ends an app for good, and with it all codes, grants, tokens and consents that name it. The record stays
// until the last of those expires, without the description, the logo and the addresses, and is never enabled again.
func DeleteApp(tx *state.Tx, a App) error {
	v := tx.View()
	var gone time.Time
	for _, g := range grants.List(v, byGrantedApp, state.NumberKey(a.ID)) {
		gone = later(gone, g.Expires)
	}
	for _, c := range consents.List(v, byGrantedApp, state.NumberKey(a.ID)) {
		gone = later(gone, c.Expires)
	}
	if gone.IsZero() { // no record refers to the app
		removeByID(tx, &apps, state.NumberID(a.ID))
		return nil
	}
	a.Description, a.Logo, a.RedirectURI, a.MoreURIs = "", nil, "", nil
	a.Gone = later(gone, tx.Now()).Add(time.Hour) // for the sweeps
	if a.Disabled.IsZero() {
		a.Disabled = tx.Now()
	}
	return PutApp(tx, a)
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// PutApp stores a. It returns state.ErrExists if another app has its client id, and state.ErrInvalid if a field is not
// valid.
func PutApp(tx *state.Tx, a App) error {
	if err := a.check(); err != nil {
		return err
	}
	if other := apps.First(tx.View(), byClient, state.TextKey(a.ClientID)); other != nil && other.Rec.ID != a.ID {
		return fmt.Errorf("client id of app %d: %w", a.ID, state.ErrExists)
	}
	return apps.Put(tx, a)
}
