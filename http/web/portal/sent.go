package portal

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"

	"stagedoor/state/share"
)

// sentForms remembers which forms each user has sent, so that a second click or a reload does not
// make a second key. (Payments have the ledger for that.) It guards against accidents only, because
// a user who wants to send a form twice can open it twice.
type sentForms struct{ *share.Cache[struct{}] }

const (
	// Beyond this number, the user with the most entries loses the oldest one and could send that form again. Money has
	// the check of the ledger, so that such a form makes a second key or app at most.
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

// once calls do for a form that makes something new, and reports whether that has succeeded. If not, it has called
// again with what is wrong: do failed, or the form was sent before, by a double click or by going back. A form whose
// wish was refused may be sent once more, because nothing was made.
func (rc *requestContext) once(again func(status int, problem string), do func() error) bool {
	id := rc.form.Get("id")
	if !rc.sent.markSent(rc.user.ID, id) {
		again(http.StatusConflict, problemSent)
		return false
	}
	if err := do(); err != nil {
		rc.sent.allowAgain(rc.user.ID, id)
		again(rc.problem(err))
		return false
	}
	return true
}

// markSent records that the user sends the form, and reports false if the user has sent it before or id
// is not the id of a form.
func (s sentForms) markSent(user int64, id string) bool {
	return isFormID(id) && s.Add(strconv.FormatInt(user, 10), id, struct{}{})
}

// allowAgain lets the user send a form once more, because what it asked for was refused.
func (s sentForms) allowAgain(user int64, id string) { s.Remove(strconv.FormatInt(user, 10), id) }
