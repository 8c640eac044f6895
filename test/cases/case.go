package cases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Case is one file: an exchange, perhaps with follow-ups. What must be sent byte
// for byte stays raw, so that order of members and spelling of numbers survive.
type Case struct {
	ID       string `json:"id"`
	Title    string `json:"title"`
	Category string `json:"category"`
	Level    string `json:"level"` // must or should
	Inbound  Shape  `json:"inbound_shape"`
	Upstream Shape  `json:"upstream_shape"`
	Model    string `json:"model"`
	Why      string `json:"why"`
	Exchange
	Then []Exchange `json:"then"`
}

// An Exchange is one request, its answer from upstream, and what must come of it.
type Exchange struct {
	Stream  *bool           `json:"stream"` // a follow-up inherits it
	Request json.RawMessage `json:"inbound_request"`

	UpstreamRequest  object              `json:"expect_upstream_request"`
	UpstreamPath     any                 `json:"expect_upstream_path"`
	UpstreamCalls    any                 `json:"upstream_calls"`
	UpstreamStatus   int                 `json:"upstream_status"`
	UpstreamHeaders  map[string]string   `json:"upstream_headers"`
	UpstreamWrite    struct{ Chunk any } `json:"upstream_write"`
	UpstreamResponse json.RawMessage     `json:"upstream_response"`

	Outcome
	Headers      object    `json:"expect_headers"`
	Alternatives []Outcome `json:"alternatives"`
	Skip         []string  `json:"skip"`
}

// An Outcome is one way an exchange may end for the client.
type Outcome struct {
	Status any `json:"expect_status"`
	Client struct {
		Body   object `json:"body"`
		Folded object `json:"folded"`
		Events array  `json:"events"`
		Never  array  `json:"never"`
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
func (x *Exchange) skips(what string) bool {
	for _, s := range x.Skip {
		if s == what {
			return true
		}
	}
	return false
}
