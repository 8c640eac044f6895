package portal

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"stagedoor/http/web/pages"
	"stagedoor/state/identity"
	"stagedoor/state/requestlog"
)

// pathSearch is the address of the search over pages, models, users, groups, keys, apps and requests.
const pathSearch = "/search"

const (
	// hitsPerKind bounds the hits of a kind, so that all fit into a dialog.
	hitsPerKind = 6
	// maxLooked bounds the users, and the keys, that one search looks at.
	maxLooked = 20_000
	// maxSearchText bounds what is searched for.
	maxSearchText = 200
	// lookupTime bounds the search in the log of requests.
	lookupTime = time.Second
)

// search shows what matches as a page, which works without script.
func (rc *requestContext) search() {
	text := rc.searchText()
	rc.show(http.StatusOK, &pages.Search{Viewer: rc.viewer(), Query: text, Hits: rc.hits(text)})
}

// searchJSON sends what matches to the dialog of the pages' script.
func (rc *requestContext) searchJSON() {
	hits := rc.hits(rc.searchText())
	if hits == nil {
		hits = []pages.Hit{}
	}
	pages.Protect(rc.w.Header(), "'none'", false)
	rc.w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rc.w).Encode(hits) // the client has left
}

// searchText returns what is searched for. Of a longer text the beginning counts.
func (rc *requestContext) searchText() string {
	text := strings.TrimSpace(strings.ToValidUTF8(rc.query("q"), ""))
	if len(text) > maxSearchText {
		text = strings.ToValidUTF8(text[:maxSearchText], "")
	}
	return text
}

// hits returns what matches and the user may see. An empty text finds the pages.
func (rc *requestContext) hits(text string) (hits []pages.Hit) {
	d := rc.viewerOf(&rc.visitor)
	hits = d.Places(func(name string) bool { return matches(text, name) })
	if text == "" {
		return hits
	}
	hits = append(hits[:min(len(hits), hitsPerKind)], rc.modelHits(text)...)
	if rc.user.Admin {
		hits = append(hits, rc.userHits(text)...)
		hits = append(hits, rc.groupHits(text)...)
	}
	hits = append(hits, rc.keyHits(text)...)
	hits = append(hits, rc.appHits(text)...)
	return append(hits, rc.requestHits(text)...)
}

// modelHits returns the models whose names have text.
func (rc *requestContext) modelHits(text string) (hits []pages.Hit) {
	for _, m := range rc.options.Catalog().Models() {
		if len(hits) == hitsPerKind {
			break
		}
		if !matches(text, m.ID) {
			continue
		}
		if row, ok := rc.modelRow(m.ID); ok {
			hits = append(hits, pages.Hit{Kind: "Model", Name: row.Name, Note: strings.Join(row.Providers, ", "),
				Path: row.Path()})
		}
	}
	return hits
}

// userHits returns the users whose name or address has text. It looks at a bounded number of them, because a gateway
// may have very many.
func (rc *requestContext) userHits(text string) (hits []pages.Hit) {
	looked := 0
	identity.EachUser(rc.options.State.View(), func(u *identity.User) bool {
		if matches(text, u.Username, u.Email) {
			hits = append(hits, pages.Hit{Kind: "User", Name: u.Username, Note: u.Email, Path: pathUser(u.ID)})
		}
		looked++
		return len(hits) < hitsPerKind && looked < maxLooked
	})
	return hits
}

// groupHits returns the groups whose names have text.
func (rc *requestContext) groupHits(text string) (hits []pages.Hit) {
	for _, g := range identity.ListGroups(rc.options.State.View()) {
		if len(hits) < hitsPerKind && matches(text, g.Name) {
			hits = append(hits, pages.Hit{Kind: "Group", Name: g.Name, Path: pathGroup(g.ID)})
		}
	}
	return hits
}

// keyHits finds the user's own keys, and for administrators the keys of all users.
func (rc *requestContext) keyHits(text string) (hits []pages.Hit) {
	looked := 0
	each := func(k *identity.Key) bool {
		if prefix := identity.SecretPrefix + k.Prefix; matches(text, k.Name, prefix, k.ID) {
			path, note := pathAccount+"/keys", prefix+"…"
			if rc.user.Admin {
				path = pathAllKeys + "?" + url.Values{"q": {k.ID}}.Encode()
				note = fmt.Sprintf("%s of %s", note, cmp.Or(k.User, "no user"))
			}
			hits = append(hits, pages.Hit{Kind: "Key", Name: k.Name, Note: note, Path: path})
		}
		looked++
		return len(hits) < hitsPerKind && looked < maxLooked
	}
	if rc.user.Admin {
		identity.EachKey(rc.options.State.View(), each)
		return hits
	}
	for _, k := range identity.AccessOf(rc.options.State).KeysOf(rc.user.Username) {
		if !each(&k) {
			break
		}
	}
	return hits
}

// appHits finds the apps that the user has allowed.
func (rc *requestContext) appHits(text string) (hits []pages.Hit) {
	for _, allows := range rc.options.Registry.AllowedApps(rc.user.ID) {
		if a := allowed(&allows); len(hits) < hitsPerKind && matches(text, a.Name, a.Host) {
			hits = append(hits, pages.Hit{Kind: "App", Name: a.Name, Note: a.Host, Path: pathApps})
		}
	}
	return hits
}

// requestHits finds requests by the first characters of their ids, six at least. Other searches of the log are those of
// its own page.
func (rc *requestContext) requestHits(text string) (hits []pages.Hit) {
	log, err := rc.openLog()
	if err != nil || log == nil || len(text) < 6 || strings.ContainsAny(text, " :\"") {
		return nil
	}
	// Shorter beginnings of ids fit a large part of the log, and texts with spaces, colons or quotes are no ids.
	ctx, cancel := context.WithTimeout(rc.r.Context(), lookupTime)
	defer cancel()
	q := requestlog.Query{Owner: rc.logOwner(), Limit: hitsPerKind,
		Terms: []requestlog.Term{{Field: "id", Text: text + "*"}}}
	// A log that fails or takes long has no hits here; its own page says what is wrong.
	_ = log.Find(ctx, &q, func(r *requestlog.Record) bool {
		row := pages.RequestRow{Record: *r}
		hits = append(hits, pages.Hit{Kind: "Request", Name: r.ID, Note: r.Model + ", " + row.Name(), Path: row.Path()})
		return true
	})
	return hits
}
