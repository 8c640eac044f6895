package cases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Case is one file: an exchange, perhaps with follow-ups. What must be sent byte
// for byte stays raw, so that order of members and spelling of numbers survive.
type Case struct {
	ID       string `json:"id"` // the name of the file without .json
	Title    string `json:"title"`
	Category string `json:"category"`
	Level    string `json:"level"`          // must or should
	Inbound  Shape  `json:"inbound_shape"`  // the client's
	Upstream Shape  `json:"upstream_shape"` // the provider's
	Model    string `json:"model"`          // part of the path where the shape has it there
	Why      string `json:"why"`            // the rule or the document from which the expectation follows
	Exchange
	// Then are follow-ups. Each may repeat parts of the reply before it with placeholders. The case ends with the first
	// exchange without a reply that can be followed up.
	Then []Exchange `json:"then"`
}

// An Exchange is one request, its answer from upstream, and what must come of it.
type Exchange struct {
	Stream  *bool           `json:"stream"` // a follow-up inherits it
	Request json.RawMessage `json:"inbound_request"`

	// UpstreamRequest has matchers for the first call of the upstream, by pointers. UpstreamPath is a matcher for its
	// path with the query, and UpstreamCalls one for the number of calls, which is 1 by default.
	UpstreamRequest object `json:"expect_upstream_request"`
	UpstreamPath    any    `json:"expect_upstream_path"`
	UpstreamCalls   any    `json:"upstream_calls"`

	// UpstreamStatus and UpstreamHeaders are those of the upstream's answer. The status is 200 by default. The header
	// Content-Encoding: gzip compresses the answer if the gateway accepts that.
	UpstreamStatus  int               `json:"upstream_status"`
	UpstreamHeaders map[string]string `json:"upstream_headers"`
	// UpstreamWrite cuts the answer into pieces of so many bytes, wherever that is. Without it a stream is cut
	// between its events and a document is sent whole.
	UpstreamWrite struct{ Chunk any } `json:"upstream_write"`
	// UpstreamResponse is the body of the answer: a document, a list of texts that make up a stream, or
	// {"$text": "...", "$content_type": "..."} for anything else. $content_type is text/plain by default.
	UpstreamResponse json.RawMessage `json:"upstream_response"`

	Outcome
	// Headers has matchers for the headers of the client's reply. Several values of one header are joined with ", ".
	Headers object `json:"expect_headers"`
	// Alternatives replace Outcome where the gateway has a choice. One of them must hold.
	Alternatives []Outcome `json:"alternatives"`
	// Skip leaves out a group of checks: upstream_invariants (upstreamRules) or client_invariants (ClientRules).
	Skip []string `json:"skip"`
}

// An Outcome is one way an exchange may end for the client.
type Outcome struct {
	Status any `json:"expect_status"` // a matcher; 200 by default
	Client struct {
		// Body has matchers for a reply that is one document, and Folded for what the events of a stream add up to.
		Body   object `json:"body"`
		Folded object `json:"folded"`
		// Events must come in this order, with any others between them, and Never must not come. Each is a matcher of
		// {"event": name or null, "data": object or "[DONE]"}.
		Events array `json:"events"`
		Never  array `json:"never"`
	} `json:"expect_client_response"`
}

// Load reads every case in a folder and its subfolders, ordered by name. A
// schema.json among them is not a case.
func Load(dir string) ([]Case, error) {
	var out []Case
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".json" || entry.Name() == "schema.json" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		c, err := Parse(text)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if want := strings.TrimSuffix(entry.Name(), ".json"); c.ID != want {
			return fmt.Errorf("%s: id is %q, want the name of the file", path, c.ID)
		}
		out = append(out, c)
		return nil
	})
	return out, err
}

// Parse reads one case.
func Parse(text []byte) (Case, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var c Case
	if err := d.Decode(&c); err != nil {
		return Case{}, err
	}
	for i := range c.Then {
		if c.Then[i].Stream == nil {
			c.Then[i].Stream = c.Stream
		}
	}
	return c, nil
}

// streamed reports whether the exchange asks for a stream.
func (x *Exchange) streamed() bool { return x.Stream != nil && *x.Stream }

// skips reports whether the case leaves out a group of checks.
func (x *Exchange) skips(what string) bool { return slices.Contains(x.Skip, what) }
