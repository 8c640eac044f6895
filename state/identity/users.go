package identity

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// UserStatus is what an account may do (imagegen-and-oauth.md 2.4, decisions).
type UserStatus int

// The statuses.
const (
	UserActive   UserStatus = 1
	UserDisabled UserStatus = 2
)

// User is an account. What it owns and owes is the ledger's, not here.
type User struct {
	ID       int64  `json:"id"` // 1, 2, ...; never given twice
	Username string `json:"username"`
	Email    string `json:"email,omitempty"`
	// Password is a PHC string of package password; "": the user cannot sign in.
	Password string     `json:"password,omitempty"`
	Status   UserStatus `json:"status"`
	// Admin: may administer the gateway in a browser. Pages neither give nor
	// take it.
	Admin bool `json:"admin,omitempty"`
	// Ceiling is what the user may do at most, whatever the user's keys allow.
	Ceiling Ceiling `json:"ceiling,omitzero"`
	Group   int64   `json:"group,omitempty"` // id of the group that the user is in; 0: none
	// Epoch grows when all sessions are to end: those of an earlier one are void.
	Epoch   int64     `json:"epoch,omitempty"`
	Created time.Time `json:"created"`
}

// Active reports whether the account may be used.
func (u *User) Active() bool { return u.Status == UserActive }

// restricted reports whether a request of the user's keys can be refused for the user's sake.
func (u *User) restricted() bool { return !u.Active() || u.Ceiling.Restricts() || u.Group != 0 }

// LogValue keeps all but the harmless out of logs.
func (u User) LogValue() slog.Value { return slog.GroupValue(slog.Int64("id", u.ID)) }

// MaxUsername is the longest username in bytes.
const MaxUsername = 64

func (u *User) check() error {
	if state.IsKeyAccount(u.Username) {
		return fmt.Errorf("%w: a username that begins with %q", state.ErrInvalid, state.KeyAccount(""))
	}
	if strings.ContainsFunc(u.Username, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return fmt.Errorf("%w: a username must be printable ASCII without spaces", state.ErrInvalid)
	}
	if u.Username == "" || len(u.Username) > MaxUsername || u.Status < UserActive || u.Status > UserDisabled {
		return fmt.Errorf("%w: user %d", state.ErrInvalid, u.ID)
	}
	if err := u.Ceiling.check(); err != nil {
		return fmt.Errorf("user %d: %w", u.ID, err)
	}
	return nil
}

const byName = "name"

var users = state.Table[User]{
	Name: journal.User,
	ID:   func(u *User) string { return state.NumberID(u.ID) },
	Indexes: map[string]state.Index[User]{
		byName:  {Unique: true, Key: func(u *User) []byte { return folded(u.Username) }},
		byGroup: membership,
	},
}

// folded makes names that differ in case only the same.
func folded(name string) []byte { return state.TextKey(strings.ToLower(name)) }

// FindUser returns an account.
func FindUser(v state.View, id int64) (User, bool) { return users.Get(v, state.NumberID(id)).Record() }

// FindUserByName finds an account whatever the case of its name.
func FindUserByName(v state.View, name string) (User, bool) {
	return users.First(v, byName, folded(name)).Record()
}

// ListUsers lists at most limit accounts (all if 0) with ids above after.
func ListUsers(v state.View, after int64, limit int) []User {
	var list []User
	users.From(v, state.ByID, state.TextKey(state.NumberID(max(after, 0)+1)), func(r *state.Row[User]) bool {
		list = append(list, r.Rec)
		return len(list) != limit
	})
	return list
}

// HasAdministrator reports whether there is an active administrator.
func HasAdministrator(v state.View) bool {
	for u := range users.All(v) {
		if u.Admin && u.Active() {
			return true
		}
	}
	return false
}

// AddUser keeps a new account under the next id, which it returns with it.
func AddUser(tx *state.Tx, u User) (User, error) {
	u.ID = 1
	if last := users.Last(tx.View()); last != nil {
		u.ID = last.Rec.ID + 1
	}
	u.Created = tx.Now()
	return u, PutUser(tx, u)
}

// PutUser keeps u. Two accounts can't have one name: ErrExists.
func PutUser(tx *state.Tx, u User) error {
	if err := u.check(); err != nil {
		return err
	}
	if other := users.First(tx.View(), byName, folded(u.Username)); other != nil && other.Rec.ID != u.ID {
		return fmt.Errorf("username %q: %w", u.Username, state.ErrExists)
	}
	if u.Group != 0 && groups.Get(tx.View(), state.NumberID(u.Group)) == nil {
		return fmt.Errorf("group %d: %w", u.Group, state.ErrNotFound)
	}
	return users.Put(tx, u)
}
