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
}

// pick returns the id of the item that text names: by its id, by its name whatever the case, or by a beginning of its
// id that no other item has. missing is the error text if there is none, to which pick adds the name that was probably
// meant.
func pick(text, missing string, all []candidate) (string, error) {
	var named, begun []candidate
	for _, c := range all {
		_, body, typed := strings.Cut(c.id, "_")
		switch {
		case c.id == text:
			return c.id, nil
		case !c.gone && strings.EqualFold(c.name, text):
			named = append(named, c)
		case text == "":
		case strings.HasPrefix(c.id, text), typed && strings.HasPrefix(body, text),
			!c.gone && c.short != "" && strings.HasPrefix(c.short, text):
			begun = append(begun, c)
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
		var names []string
		for _, c := range all {
			if !c.gone {
				names = append(names, c.name)
			}
		}
		return "", errors.New(missing + cli.DidYouMean(text, names))
	}
	const shown = 5
	list := make([]string, 0, shown+1)
	for i, c := range fits {
		if i == shown {
			list = append(list, "...")
			break
		}
		list = append(list, fmt.Sprintf("%s (%s)", c.id, cli.Printable(c.name)))
	}
	return "", fmt.Errorf("%q fits several: %s", text, strings.Join(list, ", "))
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

// FindKey returns the id of the key that text names: by its id, by a beginning of that, or by its name.
func FindKey(ctx context.Context, api *adminapi.Client, text string) (string, error) {
	return findKey(ctx, api, text)
}

// A finder returns the id of the item that an argument names.
type finder func(ctx context.Context, api *adminapi.Client, text string) (string, error)

// finderOf returns the finder for a list of the API.
func finderOf[T any](path, missing string, view func(*T) candidate) finder {
	return func(ctx context.Context, api *adminapi.Client, text string) (string, error) {
		items, err := listAll[T](ctx, api, path)
		if err != nil {
			return "", err
		}
		all := make([]candidate, len(items))
		for i := range items {
			all[i] = view(&items[i])
		}
		return pick(text, missing, all)
	}
}

var (
	findKey = finderOf("/keys", "there is no such key", func(k *adminapi.Key) candidate {
		return candidate{k.ID, k.Name, k.Prefix, k.State == "revoked"}
	})
	findApp = finderOf("/apps", "there is no such app", func(m *adminapi.App) candidate {
		return candidate{strconv.FormatInt(m.ID, 10), m.Name, m.ClientID, m.Disabled != nil}
	})
	findCode = finderOf("/redeem-codes", "there is no such redeem code", func(m *adminapi.Code) candidate {
		return candidate{m.ID, m.Hint, "", m.State != "open"}
	})
	findGroup = finderOf("/groups", "there is no such group", func(g *adminapi.Group) candidate {
		return candidate{strconv.FormatInt(g.ID, 10), g.Name, "", false}
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
