package portal

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"time"

	"stagedoor/state/share"
)

// sentForms remembers which forms each user has sent, so that a second click or a reload does not
// make a second key. (Payments have the ledger for that.) It guards against accidents only, because
// a user who wants to send a form twice can open it twice.
type sentForms struct{ *share.Cache[struct{}] }

const (
	maxSent  = 20_000 // of all users together
	sentLife = 24 * time.Hour
	formID   = 16 // bytes
)

// newSentForms returns an empty memory of forms that were sent.
func newSentForms(now func() time.Time) sentForms {
	return sentForms{share.NewCache[struct{}](maxSent, sentLife, now)}
}

// newFormID returns an id for a new form.
func newFormID() string {
	var raw [formID]byte
	rand.Read(raw[:])
	return hex.EncodeToString(raw[:])
}

// isFormID reports whether id can be the id of a form.
func isFormID(id string) bool {
	raw, err := hex.DecodeString(id)
	return err == nil && len(raw) == formID
}

// markSent records that the user sends the form, and reports false if the user has sent it before or id
// is not the id of a form.
func (s sentForms) markSent(user int64, id string) bool {
	return isFormID(id) && s.Add(strconv.FormatInt(user, 10), id, struct{}{})
}

// allowAgain lets the user send a form once more, because what it asked for was refused.
func (s sentForms) allowAgain(user int64, id string) { s.Remove(strconv.FormatInt(user, 10), id) }
