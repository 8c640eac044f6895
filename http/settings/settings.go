// Package settings describes changes of providers and models that are made on pages and by the API of administration:
// what can be changed, a change before it is saved, and what its review says. cmd/stagedoor implements Store, because
// it knows the configuration file; this package knows none.
//
// # Usage
//
// A page or a program reads the Status, makes a Draft with the version that it has seen, lets Review say what the draft
// would do, and calls Save with the same draft. Save refuses a draft of an older version with ErrConflict, because its
// author has not seen what it would change now. Undo takes the last saved change back, and undoing twice makes it
// again.
//
// # Secrets
//
// A Setting of Kind Secret has no Value, and no text of a Review has one, so that neither a page nor the API shows a
// key that was saved. An Edit may set a secret and cannot read it.
//
// # Errors
//
// Mistakes of a draft are no errors but a part of the Review, because people correct all of them at once.
package settings

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Edit is one change: the setting at Path gets Value, or is removed if there is none. The path begins with providers or
// models and a name. The last element may be the number of a list's element; that of its length adds one.
type Edit struct {
	Path  []string       `json:"path" doc:"providers or models, a name, settings, numbers of elements"`
	Value jsontext.Value `json:"value,omitzero" doc:"any JSON value; absent: the setting is removed"`
}

// Draft is a change that is not saved yet.
type Draft struct {
	// Version is that of the configuration for which the change was made. If it differs from that of now, Review
	// reports a conflict and Save saves nothing. "" leaves this check out.
	Version string `json:"version,omitzero" doc:"that the change was made for; another one is a conflict"`
	Edits   []Edit `json:"edits"`
}

// Line is a line of a difference.
type Line struct {
	Sign string `json:"sign" doc:"+, - or a space; … for lines that are left out"`
	Text string `json:"text"`
}

// Check is the result of one look at a provider, as the command doctor makes it.
type Check struct {
	Name   string `json:"name"`
	Status string `json:"status" enum:"ok,skipped,warning,failed"`
	Detail string `json:"detail"`
	Advice string `json:"advice,omitzero"`
}

// Review says what a change would do. No text in it has a secret.
type Review struct {
	Version  string `json:"version" doc:"that the change was compared with, or the new one"`
	Conflict bool   `json:"conflict" doc:"the configuration is not the one that the change was made for"`
	Saved    bool   `json:"saved"`
	// Place is the configuration file, the store above it in the data directory, or the memory of the process.
	Place    string   `json:"place" enum:"file,store,memory" doc:"where it is kept"`
	Mistakes []string `json:"mistakes" doc:"reasons why it cannot be saved"`
	Warnings []string `json:"warnings" doc:"what is probably not meant"`
	Diff     []Line   `json:"diff" doc:"the difference; keys are shown by their last characters"`
	// Addresses are better values for the base URLs of the changed providers, by name.
	Addresses map[string]string `json:"addresses" doc:"suggested base_url by provider"`
}

// Status describes the configuration in force.
type Status struct {
	File    string `json:"file" doc:"path of the configuration file, or empty"`
	Version string `json:"version"`
	Place   string `json:"place" enum:"file,store,memory" doc:"where the next change is kept"`
	Kept    int    `json:"kept" doc:"changes above the file, in the data directory"`
	// Editable is false if admin.configure is off.
	Editable bool       `json:"editable"`
	Models   []string   `json:"models" doc:"names that can be changed"`
	Read     time.Time  `json:"read" doc:"when the gateway took the configuration over"`
	Undo     *LastSaved `json:"undo" doc:"the change that can be undone; null: none"`
}

// LastSaved describes the change that Undo takes back.
type LastSaved struct {
	At time.Time `json:"at"`
	By string    `json:"by"`
	// What names the changed settings.
	What []string `json:"what"`
}

// Setting is a setting of a provider or a model, as a form shows it.
type Setting struct {
	Path  []string // below the entry: limits, rpm
	Doc   string
	Words []string // the only values that it can have; empty: it can have any text
	Kind  Kind
	// Value is the text as it stands in the file, or "" if the setting is absent. Of a secret it is a reference,
	// or the last characters.
	Value string
}

// Kind says how a setting is typed.
type Kind string

// The kinds of settings. The value of a List has commas between its elements.
const (
	Text   Kind = "text"
	Number Kind = "number"
	Flag   Kind = "flag"
	List   Kind = "list"
	Secret Kind = "secret"
)

// The kinds of entries.
const (
	Providers = "providers"
	Models    = "models"
)

// Errors of a Store, besides state.ErrNotFound.
var (
	ErrOff      = errors.New("changes on pages and by the API are switched off (admin.configure)")
	ErrConflict = errors.New("the configuration was changed meanwhile")
	ErrNoUndo   = errors.New("there is no change that could be undone")
)

// Store keeps the configuration. Any goroutine may use it.
type Store interface {
	// Status describes the configuration on disk, which may be newer than the one in force. Its error is that of a file
	// that cannot be read.
	Status() (Status, error)
	// Settings returns the settings of a provider or a model, or all that a new one may have if name is "". An unknown
	// name is state.ErrNotFound. Secrets are never whole in the answer.
	Settings(kind, name string) ([]Setting, error)
	// Review compares a change with the configuration of now, and changes nothing. Mistakes of the change are in the
	// Review, so that a form can show them; an error means that it could not be judged, as with ErrOff.
	Review(d Draft) (Review, error)
	// Save reviews a change, keeps it and puts it in force, or does none of it. by names the user or program. A change
	// that was not kept because of its mistakes or a conflict is a Review without Saved. If it cannot be put in force,
	// the earlier configuration is kept again. Once it is written, the end of ctx does not stop it.
	Save(ctx context.Context, d Draft, by string) (Review, error)
	// Undo takes the last change back. Undoing twice makes it again. The error is ErrNoUndo if there is none, or if the
	// configuration was changed by hand since.
	Undo(ctx context.Context, by string) (Review, error)
	// Test asks a provider with each of its keys for its list of models, which costs nothing. If d is not nil, the
	// provider is the one that the change would make. An empty name means all providers in force, several of which are
	// tested at a time. Those that ctx leaves no time for fail. A draft with mistakes is state.ErrInvalid, and an
	// unknown provider state.ErrNotFound. A provider that does not answer is a Check that says so and no error.
	Test(ctx context.Context, provider string, d *Draft) ([]Check, error)
}
