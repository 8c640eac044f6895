package admincli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/http/adminapi"
)

// candidate is an item that an argument of a command may name.
type candidate struct {
	id, name string
	// short is another beginning by which lists show the item, such as the first characters of a key.
	short string
	// gone says that the item was revoked or deleted. Only its id names it.
	gone bool
	// user owns the item and chose its name, so that only its id names it. A command for an item of the operator would
	// otherwise change one of a user, who gave it the same name.
	user string
}

// errMissing is in the errors of pick for a text that fits no item.
var errMissing = errors.New("there is no such")

// pick returns the id of the item that text names: by its id, by its name whatever the case, or by a beginning of its
// id that no other item has. Ids that are numbers have no beginnings, because 1 would mean 12 once 1 is deleted. kind
// is the word for an item in errors. If no item fits, the error also names what was probably meant.
func pick(text, kind string, all []candidate) (string, error) {
	var named, begun, ofUsers []candidate
	for _, c := range all {
		_, body, typed := strings.Cut(c.id, "_")
		switch {
		case c.id == text:
			return c.id, nil
		case !c.gone && c.user == "" && strings.EqualFold(c.name, text):
			named = append(named, c)
		case text == "" || !typed:
		case strings.HasPrefix(c.id, text), strings.HasPrefix(body, text),
			!c.gone && c.short != "" && strings.HasPrefix(c.short, text):
			begun = append(begun, c)
		case !c.gone && strings.EqualFold(c.name, text):
			ofUsers = append(ofUsers, c)
		}
	}
	fits := named
	if len(fits) == 0 {
		fits = begun
	}
	switch len(fits) {
	case 1:
		return fits[0].id, nil
	case 0:
		if len(ofUsers) > 0 {
			return "", fmt.Errorf("the %s %q belongs to a user, so give its id: %s", kind, text,
				listCandidates(ofUsers))
		}
		var names []string
		for _, c := range all {
			if !c.gone && c.user == "" {
				names = append(names, c.name)
			}
		}
		return "", fmt.Errorf("%w %s%s", errMissing, kind, cli.DidYouMean(text, names))
	}
	return "", fmt.Errorf("%q fits several: %s", text, listCandidates(fits))
}

// listCandidates returns the ids and names of some of the items, for an error.
func listCandidates(all []candidate) string {
	const shown = 5
	list := make([]string, 0, shown+1)
	for i, c := range all {
		if i == shown {
			list = append(list, "...")
			break
		}
		list = append(list, fmt.Sprintf("%s (%s)", c.id, cli.Printable(c.name)))
	}
	return strings.Join(list, ", ")
}

// listAll returns every item of a list of the API.
func listAll[T any](ctx context.Context, api *adminapi.Client, path string) ([]T, error) {
	query := url.Values{"limit": {"500"}}
	var all []T
	for {
		var page adminapi.List[T]
		if err := api.Do(ctx, "GET", path, query, nil, &page); err != nil {
			return nil, err
		}
		if all = append(all, page.Data...); page.Next == nil {
			return all, nil
		}
		query.Set("after", *page.Next)
	}
}

// FindKey returns the id of the key that text names: by its id, by a beginning of that, or by its name. A text with the
// form of an id is returned as it is if it fits no key, because requests also have ids of keys that no list shows:
// those of the configuration file (cfg_NAME), of the pages (chat_5), and of keys that were removed. Other texts that
// fit no key are errors, so that a report for a mistyped name is not empty without a word.
func FindKey(ctx context.Context, api *adminapi.Client, text string) (string, error) {
	id, err := findKey(ctx, api, text)
	if errors.Is(err, errMissing) && strings.Contains(text, "_") {
		return text, nil
	}
	return id, err
}

// A finder returns the id of the item that an argument names.
type finder func(ctx context.Context, api *adminapi.Client, text string) (string, error)

// asTyped returns text as the name of an item. It is for items that the API itself finds by what people type: accounts,
// which have no ids besides their names, and requests.
func asTyped(_ context.Context, _ *adminapi.Client, text string) (string, error) { return text, nil }

// finderOf returns the finder for a list of the API.
func finderOf[T any](path, kind string, view func(*T) candidate) finder {
	return func(ctx context.Context, api *adminapi.Client, text string) (string, error) {
		items, err := listAll[T](ctx, api, path)
		if err != nil {
			return "", err
		}
		all := make([]candidate, len(items))
		for i := range items {
			all[i] = view(&items[i])
		}
		return pick(text, kind, all)
	}
}

var (
	findKey = finderOf("/keys", "key", func(k *adminapi.Key) candidate {
		// An expired key may still be shown or removed by name, so only a revoked one is gone.
		gone := k.State == "revoked"
		return candidate{id: k.ID, name: k.Name, short: k.Prefix, gone: gone, user: k.User}
	})
	findApp = finderOf("/apps", "app", func(m *adminapi.App) candidate {
		return candidate{id: strconv.FormatInt(m.ID, 10), name: m.Name, gone: m.Disabled != nil}
	})
	findCode = finderOf("/redeem-codes", "redeem code", func(m *adminapi.Code) candidate {
		return candidate{id: m.ID, name: m.Hint, gone: m.State != "open"}
	})
	findGroup = finderOf("/groups", "group", func(g *adminapi.Group) candidate {
		return candidate{id: strconv.FormatInt(g.ID, 10), name: g.Name}
	})
)

// userID returns the id of the user with this name. Users are not found by the beginning of a name, because a command
// could change another person's account.
func userID(ctx context.Context, api *adminapi.Client, name string) (string, error) {
	var found adminapi.List[adminapi.User]
	if err := api.Do(ctx, "GET", "/users", url.Values{"username": {name}}, nil, &found); err != nil {
		return "", err
	}
	if len(found.Data) > 0 {
		return strconv.FormatInt(found.Data[0].ID, 10), nil
	}
	all, err := listAll[adminapi.User](ctx, api, "/users")
	if err != nil {
		return "", err
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Username
	}
	return "", errors.New("there is no such user" + cli.DidYouMean(name, names))
}
