package identity

import (
	"fmt"
	"log/slog"
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

	Owner       int64     `json:"owner"`
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"`
	RedirectURI string    `json:"redirect_uri"` // compared byte by byte
	Created     time.Time `json:"created"`
	Disabled    time.Time `json:"disabled,omitzero"` // zero if the app is enabled
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

func (a *App) check() error {
	if state.CheckID(a.ClientID) != nil || a.Secret == (state.Hash{}) || a.RedirectURI == "" {
		return fmt.Errorf("%w: app %d", state.ErrInvalid, a.ID)
	}
	return nil
}

const (
	byClient     = "client"
	byOwningUser = "owner"
)

var apps = state.Table[App]{
	Name: journal.App,
	ID:   func(a *App) string { return state.NumberID(a.ID) },
	Audit: &state.Audit[App]{Kind: "app", Describe: func(v state.View, a *App) (state.Target, state.Fields) {
		u, _ := FindUser(v, a.Owner)
		return state.Target{ID: strconv.FormatInt(a.ID, 10), Name: a.Name}, state.Fields{"name": a.Name,
			"description": state.Hidden(a.Description), "owner": u.Username, "redirect_uri": a.RedirectURI,
			"disabled": a.Disabled, "secret": state.Hidden(a.Secret[:]), "previous_secret_until": a.PreviousUntil}
	}},
	Indexes: map[string]state.Index[App]{
		byClient:     {Unique: true, Key: func(a *App) []byte { return state.TextKey(a.ClientID) }},
		byOwningUser: {Key: func(a *App) []byte { return state.NumberKey(a.Owner) }},
	},
}

// FindApp returns the app with this id, also if it is disabled.
func FindApp(v state.View, id int64) (App, bool) { return apps.Get(v, state.NumberID(id)).Record() }

// FindAppByClientID returns the app with this client_id, also if it is disabled.
func FindAppByClientID(v state.View, clientID string) (App, bool) {
	return apps.First(v, byClient, state.TextKey(clientID)).Record()
}

// ListApps returns the apps of an owner, oldest first. An owner of 0 selects all apps.
func ListApps(v state.View, owner int64) []App {
	if owner == 0 {
		return apps.List(v, state.ByID, nil)
	}
	return apps.List(v, byOwningUser, state.NumberKey(owner))
}

// AddApp stores a new app and returns it with its id.
func AddApp(tx *state.Tx, a App) (App, error) {
	a.ID = 1
	if last := apps.Last(tx.View()); last != nil {
		a.ID = last.Rec.ID + 1
	}
	a.Created = tx.Now()
	return a, PutApp(tx, a)
}

// PutApp stores a. Two apps cannot have the same client id: ErrExists.
func PutApp(tx *state.Tx, a App) error {
	if err := a.check(); err != nil {
		return err
	}
	if other := apps.First(tx.View(), byClient, state.TextKey(a.ClientID)); other != nil && other.Rec.ID != a.ID {
		return fmt.Errorf("client id of app %d: %w", a.ID, state.ErrExists)
	}
	return apps.Put(tx, a)
}
