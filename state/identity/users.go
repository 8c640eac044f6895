package identity

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// UserStatus says whether an account may be used. OAuth apps see the number.
type UserStatus int

// The values of UserStatus.
const (
	UserActive   UserStatus = 1
	UserDisabled UserStatus = 2
)

// User is an account of a person. Its balance is in package state/money.
type User struct {
	ID       int64  `json:"id"` // 1, 2, ...; never reused
	Username string `json:"username"`
	Email    string `json:"email,omitempty"`
	// Password is a PHC string of package password. If it is empty, the user cannot sign in.
	Password string     `json:"password,omitempty"`
	Status   UserStatus `json:"status"`
	// SecondFactor is nil for a user who signs in with the password alone.
	SecondFactor *SecondFactor `json:"second_factor,omitempty"`
	// Admin lets the user administer the gateway in a browser.
	Admin bool `json:"admin,omitempty"`
	// Ceiling limits what the user's keys may do.
	Ceiling Ceiling `json:"ceiling,omitzero"`
	Group   int64   `json:"group,omitempty"` // id of the group that the user is in; 0: none
	// Leads is the id of Group if the user leads it, else 0. PutUser ends it when the user leaves the group.
	Leads int64 `json:"leads,omitempty"`
	// Joined is the time since which the user is in Group, as PutUser sets it. Zero: in none, or since before users
	// had this field. Spending of earlier days is not for the leads of the group.
	Joined time.Time `json:"joined,omitzero"`
	// Epoch is increased to end all sessions: a session with a lower Epoch is invalid.
	Epoch   int64     `json:"epoch,omitempty"`
	Created time.Time `json:"created"`
	// Seen is the last use of a page by the user, rounded like that of sessions. Zero: never.
	Seen time.Time `json:"seen,omitzero"`
	// Erased is the time at which everything but the name was erased, because the ledger refers to it.
	Erased time.Time `json:"erased,omitzero"`
}

// Active reports whether the account may be used.
func (u *User) Active() bool { return u.Status == UserActive }

// restricted reports whether a request can be refused because of the key's user.
func (u *User) restricted() bool { return !u.Active() || u.Ceiling.Restricts() || u.Group != 0 }

// LogValue returns only the id, so that names and addresses do not reach the logs.
func (u User) LogValue() slog.Value { return slog.GroupValue(slog.Int64("id", u.ID)) }

// MaxUsername is the longest username in bytes.
const MaxUsername = 64

// check returns an error unless the user can be stored. Usernames are limited to printable ASCII,
// because roster finds them by folding bytes.
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

// users holds the users. byName finds them without regard to case, and byGroup lists the members of a group.
var users = state.Table[User]{
	Name: journal.User,
	ID:   func(u *User) string { return state.NumberID(u.ID) },
	Audit: &state.Audit[User]{Kind: "user", Describe: func(v state.View, u *User) (state.Target, state.Fields) {
		g, _ := FindGroup(v, u.Group)
		// The email address is hidden, because erasing a user erases it, and records of the log stay.
		f := state.Fields{"username": u.Username, "email": state.Hidden(u.Email), "admin": u.Admin, "group": g.Name,
			"password": state.Hidden(u.Password), "active": u.Active(), "session_epoch": u.Epoch, "erased": u.Erased,
			"leads_group": u.Leads != 0, "second_factor": u.SecondFactor != nil}
		if factor := u.SecondFactor; factor != nil {
			var hashes strings.Builder // so that replacing all codes is seen, and not their number only
			for _, h := range factor.Recovery {
				hashes.Write(h[:])
			}
			f["recovery_codes"], f["recovery"] = len(factor.Recovery), state.Hidden(hashes.String())
			f["second_factor_secret"] = state.Hidden(factor.Secret)
		}
		u.Ceiling.describe(f)
		return state.Target{ID: strconv.FormatInt(u.ID, 10), Name: u.Username}, f
	}},
	Indexes: map[string]state.Index[User]{
		byName:  {Unique: true, Key: func(u *User) []byte { return lowerKey(u.Username) }},
		byGroup: membership,
	},
}

// lowerKey returns the index key for a name, so that names that differ only in case are equal.
func lowerKey(name string) []byte { return state.TextKey(strings.ToLower(name)) }

// chosenName returns a name that a user has chosen for a key or token, as a field of the audit log. Once the user is
// erased it is hidden, because the command that erases it is recorded and must not write it into the log.
func chosenName(u *User, name string) any {
	if !u.Erased.IsZero() {
		return state.Hidden(name)
	}
	return name
}

// FindUser returns the user with this id.
func FindUser(v state.View, id int64) (User, bool) { return users.Get(v, state.NumberID(id)).Record() }

// FindUserByName returns the user with this name and ignores case.
func FindUserByName(v state.View, name string) (User, bool) {
	return users.First(v, byName, lowerKey(name)).Record()
}

// ListUsers returns at most limit users (all if limit is 0) with ids above after.
func ListUsers(v state.View, after int64, limit int) []User {
	var list []User
	users.From(v, state.ByID, state.TextKey(state.NumberID(max(after, 0)+1)), func(r *state.Row[User]) bool {
		list = append(list, r.Rec)
		return len(list) != limit
	})
	return list
}

// EachUser calls yield with the users by id until it returns false. The records are shared and must not be modified.
func EachUser(v state.View, yield func(*User) bool) {
	for u := range users.All(v) {
		if !yield(u) {
			return
		}
	}
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

// AddUser stores a new user and returns it with its id. Ids rise and are not used again, because a user's record is
// erased but never removed. A name in use is state.ErrExists.
func AddUser(tx *state.Tx, u User) (User, error) {
	u.ID = 1
	if last := users.Last(tx.View()); last != nil {
		u.ID = last.Rec.ID + 1
	}
	u.Created = tx.Now()
	return u, PutUser(tx, u)
}

// PutUser stores u, and notes when the user came into the group. It returns state.ErrExists if another user has the
// name in any case of letters, state.ErrNotFound if there is no such group, and state.ErrInvalid if a field is not
// valid.
func PutUser(tx *state.Tx, u User) error {
	if err := u.check(); err != nil {
		return err
	}
	if other := users.First(tx.View(), byName, lowerKey(u.Username)); other != nil && other.Rec.ID != u.ID {
		return fmt.Errorf("username %q: %w", u.Username, state.ErrExists)
	}
	if u.Group != 0 && groups.Get(tx.View(), state.NumberID(u.Group)) == nil {
		return fmt.Errorf("group %d: %w", u.Group, state.ErrNotFound)
	}
	if u.Leads != u.Group {
		u.Leads = 0 // also for a user who is added again later
	}
	switch before, known := FindUser(tx.View(), u.ID); {
	case u.Group == 0:
		u.Joined = time.Time{}
	case known && before.Group == u.Group:
		u.Joined = before.Joined
	default:
		u.Joined = tx.Now()
	}
	return users.Put(tx, u)
}
