// Package modellist reads the lists of the models that providers serve. The gateway shows their names to clients where
// the configuration has only a pattern.
//
// A list is text of a provider: it is bounded in time and size, and names that no client could send are left out. The
// package keeps nothing, see actors/runtime for how long a list counts.
//
// # Errors
//
// ErrNone means that the provider has no such list. Every other error is one that may pass.
//
// # Concurrency
//
// Fetch may be called by several goroutines. Each call reads the pages of one provider, and ends with its context.
package modellist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
	"stagedoor/providers/upstream"
)

// Bounds of the list of one provider.
const (
	// Within is the time for all of its pages.
	Within   = 10 * time.Second
	MaxBytes = 4 << 20
	MaxNames = 2000
	maxName  = 200
	maxPages = 20
)

// ErrNone means that the provider has no list of models: there is no such route, or none is known for its shape.
var ErrNone = errors.New("the provider has no list of models")

var errForm = errors.New("expected a list of models")

// Fetch returns the names of the models that a provider lists, sorted and without repetitions. probe is the Probe of
// the provider's shape. cut is set if there are more names than MaxNames, or more pages than Fetch reads. A refused key
// does not rest, because some keys may be used for requests and not for lists.
func Fetch(ctx context.Context, c *upstream.Client, probe *shapes.Probe) (names []string, cut bool, err error) {
	if probe == nil || probe.Path == "" {
		return nil, false, ErrNone
	}
	ctx, cancel := context.WithTimeout(ctx, Within)
	defer cancel()
	key, left, after := c.Keys().Take(time.Now(), ""), MaxBytes, ""
	for pages := 1; ; pages++ {
		query := probe.Pages
		if after != "" {
			query += "&" + probe.After + "=" + url.QueryEscape(after)
		}
		r := upstream.Request{Method: http.MethodGet, Path: probe.Path, Query: query, Header: probe.Header.Clone()}
		body, err := readPage(ctx, c, r, probe, key, left)
		if err != nil {
			return nil, false, err
		}
		left -= len(body)
		page := gjson.ParseBytes(body)
		if names, err = appendNames(names, page); err != nil {
			return nil, false, err
		}
		after = next(page)
		cut = after != "" && probe.After != "" && pages == maxPages || len(names) > MaxNames
		if cut || after == "" || probe.After == "" {
			break
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), MaxNames)], cut, nil
}

// readPage returns the body of one page, which is valid JSON of at most most bytes.
func readPage(ctx context.Context, c *upstream.Client, r upstream.Request, probe *shapes.Probe, key string,
	most int) ([]byte, error) {
	reply, err := c.Send(ctx, r, probe.Authorize, key)
	if err != nil {
		return nil, err
	}
	defer reply.Close()
	switch reply.Status {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone, http.StatusNotImplemented:
		return nil, ErrNone
	default:
		return nil, fmt.Errorf("the provider answered %d", reply.Status)
	}
	text, err := reply.Body()
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(text, int64(most)+1))
	switch {
	case err != nil:
		return nil, reply.Failed(err)
	case len(body) > most:
		return nil, fmt.Errorf("the list is longer than %d bytes", MaxBytes)
	case !fields.ValidLenient(body):
		return nil, errForm
	}
	return body, nil
}

// appendNames appends the names of one page: data[].id, or models[].name.
func appendNames(names []string, page gjson.Result) ([]string, error) {
	list, member := page.Get("data"), "id"
	if !list.IsArray() {
		list, member = page.Get("models"), "name"
	}
	if !list.IsArray() {
		return nil, errForm
	}
	list.ForEach(func(_, model gjson.Result) bool {
		if v := model.Get(member); v.Type == gjson.String {
			if name := strings.TrimPrefix(v.Str, "models/"); usable(name) {
				names = append(names, strings.Clone(name))
			}
		}
		return len(names) <= 2*MaxNames // a list may repeat a name
	})
	return names, nil
}

// next returns the cursor of the page after this one, or "" if this is the last one.
func next(page gjson.Result) string {
	if page.Get("has_more").Bool() {
		return page.Get("last_id").String()
	}
	return page.Get("nextPageToken").String()
}

// usable reports whether a name is one that a client could send and a page can show.
func usable(name string) bool {
	hidden := func(r rune) bool { return !unicode.IsPrint(r) || r == '*' || r == ' ' }
	return name != "" && len(name) <= maxName && utf8.ValidString(name) && strings.IndexFunc(name, hidden) < 0
}
