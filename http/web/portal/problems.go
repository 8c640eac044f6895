package portal

import (
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"stagedoor/actors/tokens"
	"stagedoor/http/envelope"
	"stagedoor/http/web/pages"
	"stagedoor/state"
	"stagedoor/state/money"
)

var (
	failureForeign = &pages.Failure{Title: "Please start again",
		Message: "This form does not belong to this browser's session. Go back, reload the page and try again."}
	failureAnswer = &pages.Failure{Title: "Please start again",
		Message: "This answer was used already, is too old, or belongs to another browser. Open the " +
			"sign-in page and start again.", Back: &pages.Link{Name: "Sign in", Path: pathSignIn}}
	failureBroken = &pages.Failure{
		Title:   "The form is broken",
		Message: "What your browser sent cannot be read. Go back and try again.",
	}
	failureBusy = &pages.Failure{
		Title:   "Not available",
		Message: "The service cannot do this at the moment. Try again in a minute.",
	}
)

// failureDocument is the page for a document that does not exist.
var failureDocument = &pages.Failure{Title: "Not found", Message: "No document has this name. /docs/ lists them all."}

// problemSent is the text that a form shows if it was sent before.
const problemSent = "This form was sent already. What it asked for was done once; look below before you send it again."

// notices maps a word in a page's address to the sentence it shows after a change. A
// forged address therefore cannot make it show another text.
var notices = map[string]string{
	"key_changed": "The key was changed, at once for all requests.",
	"key_revoked": "The key was revoked.", "key_enabled": "The key can be used again.",
	"key_disabled":   "The key cannot be used until you enable it.",
	"key_recorded":   "What the key sends and is answered from now on is kept for the pages of its requests.",
	"key_unrecorded": "Nothing more is recorded. What is kept already stays until it is too old.",
	"app_revoked":    "The app can no longer see your account.", "token_revoked": "The token was revoked.",
	"app_changed":       "The app was changed.",
	"app_deleted":       "The app was deleted. All its secrets, codes and tokens are refused.",
	"password_changed":  "Your password was changed. All other sessions have ended.",
	"alert_sent":        "The test is on its way. The log of the gateway says whether it arrived.",
	"session_ended":     "The session has ended.",
	"passkey_added":     "You can sign in with the passkey from now on.",
	"passkey_renamed":   "The passkey was renamed.",
	"identity_linked":   "You can sign in this way from now on.",
	"identity_unlinked": "This way to sign in was removed. All other sessions have ended.",
	"credited":          "The money was credited.", "adjusted": "The balance was adjusted.",
	"group_created": "The group was created. It restricts nothing yet.", "group_deleted": "The group was deleted.",
	"ceiling_changed": "The change is in force.",
	"member_added":    "The user is in the group.", "member_removed": "The user is no longer in the group.",
	"lead_named": "The user leads the group.", "lead_removed": "The user no longer leads the group.",
	"user_left":  "The user is no longer in your group.",
	"key_made":   "The key was made. The member draws its secret on the page Keys.",
	"user_moved": "The group was changed.", "role_changed": "The role was changed.",
	"sessions_ended": "All sessions of the user have ended.", "user_erased": "The user was erased.",
	"user_erased_partly":   "The user was erased, except what is at work now. Erase the user again in a while.",
	"invitation_withdrawn": "The invitation was withdrawn. Its link does not work any more.",
	"second_factor_off":    "The second factor is off. Your password alone signs you in.",
	"second_factor_reset":  "The second factor was reset. The user signs in with the password alone.",
	"user_enabled":         "The user is enabled.", "user_disabled": "The user is disabled.",
	"request_ended": "The request was ended.", "provider_paused": "Requests for the provider wait until you resume it.",
	"configuration_saved":  "The change is saved and in force.",
	"configuration_undone": "The last change was undone. Undo makes it again.",
	"provider_resumed":     "Requests for the provider go on.",
}

// retryUnavailable is the Retry-After where the error names none.
const retryUnavailable = 5 * time.Second

// busyPasswords is the problem of a form for whose password there is no place.
const busyPasswords = "Too many passwords are being checked. Wait a little and try again."

// problem puts an error into words for the form it is about. Errors that users must not
// see go to the log.
func (rc *requestContext) problem(err error) (status int, text string) {
	var field *tokens.FieldError
	var limited *tokens.Limited
	switch {
	case errors.As(err, &field):
		return http.StatusUnprocessableEntity, sentence(field.Error())
	case errors.Is(err, tokens.ErrCode):
		return http.StatusForbidden, "The code is wrong or was used already."
	case errors.Is(err, tokens.ErrStale):
		return http.StatusForbidden, "Your account has no password with which to confirm this. Sign out, sign in " +
			"again, and repeat it within 10 minutes."
	case errors.Is(err, tokens.ErrExists):
		return http.StatusConflict, "There is a user of this name."
	case errors.Is(err, tokens.ErrKeysForbidden):
		return http.StatusForbidden, "You may not create keys or tokens. Ask the operator for one."
	case errors.Is(err, tokens.ErrHasMembers):
		return http.StatusConflict, "The group has members. Remove them first."
	case errors.Is(err, tokens.ErrOperatorOnly):
		return http.StatusForbidden, "The operator disabled this key, and only the operator can enable it."
	case errors.Is(err, tokens.ErrAppDisabled):
		return http.StatusForbidden, "The operator disabled this app. Only the operator can delete it."
	case errors.Is(err, tokens.ErrLeadOnly):
		return http.StatusForbidden, "A lead of your group disabled this key. A lead or the operator can enable it."
	case errors.Is(err, tokens.ErrTooMany):
		return http.StatusUnprocessableEntity, sentence(err.Error())
	case errors.As(err, &limited):
		envelope.SetRetryAfter(rc.w.Header(), limited.RetryAfter)
		if limited.Busy != nil {
			return http.StatusTooManyRequests, busyPasswords
		}
		return http.StatusTooManyRequests, "Too many attempts. Wait a little and try again."
	case errors.Is(err, money.ErrInsufficient):
		return http.StatusUnprocessableEntity,
			"The account does not have that much: what is spent or held cannot be taken."
	case errors.Is(err, state.ErrInvalid):
		return http.StatusUnprocessableEntity, "The amount is too large or too small."
	}
	if rc.r.Context().Err() == nil {
		rc.options.Logger.Error("portal", "path", rc.r.URL.Path, "cause", err)
	}
	envelope.SetRetryAfter(rc.w.Header(), retryUnavailable)
	return http.StatusServiceUnavailable, failureBusy.Message
}

// concluded answers a form that is one button: with the page that says what was
// done, 404, or why it could not be.
func (rc *requestContext) concluded(err error, path, what string) {
	switch {
	case err == nil:
		rc.done(path, what)
	case errors.Is(err, tokens.ErrNotFound), errors.Is(err, state.ErrNotFound):
		rc.missing()
	default:
		status, text := rc.problem(err)
		rc.show(status, &pages.Failure{Title: "That did not work", Message: text})
	}
}

// changed ends a form as concluded does, after a change of what belongs to others, which an administrator or a lead has
// made. It also logs the change with the one who made it. message and about say what was changed. A change that was
// refused is not logged, because it is not in the audit log either.
func (rc *requestContext) changed(err error, path, word, message string, about ...any) {
	if err == nil {
		rc.options.Logger.Info(message, append(about, "by", rc.user.ID)...)
	}
	rc.concluded(err, path, word)
}

// busy writes the page for a failure that the user did not cause, and logs its cause.
func (p *Portal) busy(w http.ResponseWriter, r *http.Request, cause error) {
	if r.Context().Err() == nil {
		p.options.Logger.Error("portal", "path", r.URL.Path, "cause", cause)
	}
	envelope.SetRetryAfter(w.Header(), retryUnavailable)
	p.write(w, r, http.StatusServiceUnavailable, failureBusy)
}

// sentence makes one of a field and its rule.
func sentence(text string) string {
	r, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(r)) + strings.ReplaceAll(text[size:], "_", " ") + "."
}
