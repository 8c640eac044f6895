package modellist_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/modellist"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/registry"
	"stagedoor/providers/upstream"
)

// fetch reads the list of a stand-in of a shape.
func fetch(t *testing.T, shape dialogue.Shape, path string, h http.HandlerFunc) ([]string, bool, error) {
	t.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	c, err := upstream.New(upstream.Options{BaseURL: s.URL + path, APIKeys: []string{"k1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return modellist.Fetch(t.Context(), c, &registry.Describe(shape).Probe)
}

// Each vendor's list is asked for on its route, with its key and its pages. A stand-in answers nothing else.
func TestEachVendorsListIsReadByItsOwnRoute(t *testing.T) {
	bearer := http.Header{"Authorization": {"Bearer k1"}}
	for _, c := range []struct {
		shape  dialogue.Shape
		base   string
		header http.Header
		pages  [][2]string // request and reply
		want   string
	}{
		{"chat", "/v1", bearer, [][2]string{{"/v1/models",
			`{"object":"list","data":[{"id":"b","object":"model"},{"id":"a"},{"id":"b"}]}`}}, "a b"},
		{"responses", "/v1", bearer, [][2]string{{"/v1/models", `{"data":[{"id":"a/b"}]}`}}, "a/b"},
		{"embeddings", "/v1", bearer, [][2]string{{"/v1/models", `{"data":[]}`}}, ""},
		{"messages", "", http.Header{"X-Api-Key": {"k1"}, "Anthropic-Version": {"2023-06-01"}}, [][2]string{
			{"/v1/models?limit=1000", `{"data":[{"type":"model","id":"m2"}],"has_more":true,"last_id":"m 2"}`},
			{"/v1/models?limit=1000&after_id=m+2", `{"data":[{"id":"m1"}],"has_more":false,"last_id":"m1"}`},
		}, "m1 m2"},
		{"gemini", "/v1beta", http.Header{"X-Goog-Api-Key": {"k1"}}, [][2]string{
			{"/v1beta/models?pageSize=1000", `{"models":[{"name":"models/g-2"}],"nextPageToken":"x=&y"}`},
			{"/v1beta/models?pageSize=1000&pageToken=x%3D%26y", `{"models":[{"name":"models/g-1"}]}`},
		}, "g-1 g-2"},
	} {
		t.Run(string(c.shape), func(t *testing.T) {
			page := 0
			names, cut, err := fetch(t, c.shape, c.base, func(w http.ResponseWriter, r *http.Request) {
				if page >= len(c.pages) || r.Method != http.MethodGet || r.RequestURI != c.pages[page][0] {
					t.Errorf("page %d: %s %s", page, r.Method, r.RequestURI)
					return
				}
				for name, want := range c.header {
					if got := r.Header.Values(name); !slices.Equal(got, want) {
						t.Errorf("%s is %q", name, got)
					}
				}
				fmt.Fprint(w, c.pages[page][1])
				page++
			})
			if got := strings.Join(names, " "); got != c.want || cut || err != nil || page != len(c.pages) {
				t.Errorf("%q, cut %v, %v, %d pages", got, cut, err, page)
			}
		})
	}
}

// A list is text of a provider: names that no client could send are left out, and what is no list is an error.
func TestListsThatCannotBeUsedAreRefusedAndNamesAreChecked(t *testing.T) {
	reply := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	many := strings.Repeat(`{"id":"x"},`, 10)
	for i := range modellist.MaxNames + 1 {
		many += fmt.Sprintf(`{"id":"m%d"},`, i)
	}
	hostile := `{"data":[{"id":"a"},{"id":""},{"id":"b c"},{"id":"*"},{"id":7},{"name":"x"},{"id":"a\u0000"},` +
		`{"id":"\u202e"},{"id":"` + strings.Repeat("a", 201) + `"},null,[],"b"]}`
	elsewhere := func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusFound) }
	for name, c := range map[string]struct {
		reply http.HandlerFunc
		want  string
	}{
		"hostile names":   {reply(200, hostile), "1 false <nil>"},
		"too many names":  {reply(200, `{"data":[`+strings.TrimSuffix(many, ",")+`]}`), "2000 true <nil>"},
		"no list":         {reply(200, `{"object":"list"}`), "0 false expected a list of models"},
		"no JSON":         {reply(200, `<html>`), "0 false expected a list of models"},
		"deep JSON":       {reply(200, strings.Repeat("[", 1<<20)), "0 false expected a list of models"},
		"too long":        {reply(200, strings.Repeat(" ", 4<<20+1)), "0 false the list is longer than 4194304 bytes"},
		"no such route":   {reply(404, `{}`), "0 false " + modellist.ErrNone.Error()},
		"a refused key":   {reply(403, `{"error":{"message":"k1 may not"}}`), "0 false the provider answered 403"},
		"another address": {elsewhere, "0 false the provider answered 302"},
	} {
		t.Run(name, func(t *testing.T) {
			names, cut, err := fetch(t, "chat", "", c.reply)
			if got := fmt.Sprint(len(names), cut, err); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if _, _, err := modellist.Fetch(t.Context(), nil, &shapes.Probe{}); !errors.Is(err, modellist.ErrNone) {
		t.Errorf("a shape without a route: %v", err)
	}
}

// A provider that lists pages without an end, or sends nothing, is left after a bounded number of them and of seconds.
func TestReadingAListEnds(t *testing.T) {
	pages := 0
	names, cut, err := fetch(t, "gemini", "", func(w http.ResponseWriter, _ *http.Request) {
		pages++
		fmt.Fprintf(w, `{"models":[{"name":"models/m%d"}],"nextPageToken":"again"}`, pages)
	})
	if len(names) != pages || pages != 20 || !cut || err != nil {
		t.Errorf("%d names of %d pages, cut %v, %v", len(names), pages, cut, err)
	}
	synctest.Test(t, func(t *testing.T) {
		c, err := upstream.New(upstream.Options{BaseURL: "http://silent.test", Transport: silent{}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, _, err = modellist.Fetch(context.Background(), c, &registry.Describe("chat").Probe)
		if took := time.Since(began); err == nil || took != modellist.Within {
			t.Errorf("%v after %s", err, took)
		}
	})
}

// silent is a network in which no request is answered.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A key that may not read the list may still be used for requests.
func TestARefusedListDoesNotRestTheKey(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }))
	defer s.Close()
	c, err := upstream.New(upstream.Options{BaseURL: s.URL, APIKeys: []string{"k1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _, err = modellist.Fetch(t.Context(), c, &registry.Describe("chat").Probe)
	if n := c.Keys().Usable("m", time.Now()); err == nil || n != 1 {
		t.Errorf("%v, %d keys", err, n)
	}
}
