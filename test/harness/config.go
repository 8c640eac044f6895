package harness

import (
	"encoding/json"
	"maps"
)

// A Config is what a test says of the gateway's configuration. It is written as
// JSON, which is YAML too.
type Config struct {
	Listen    []string            `json:"listen"` // filled with a free port if empty
	Data      string              `json:"data"`   // "memory" if empty
	Keys      []Key               `json:"keys"`   // one key, TestKey, if empty
	Providers map[string]Provider `json:"providers"`
	Models    map[string]Model    `json:"models"`
	Aliases   map[string]string   `json:"aliases,omitempty"`
	OAuth     *OAuth              `json:"oauth,omitempty"`
	Admin     *Admin              `json:"admin,omitempty"`
	Limits    *Limits             `json:"limits,omitempty"`
	Webhooks  []Webhook           `json:"webhooks,omitempty"`
	Shutdown  *Shutdown           `json:"shutdown,omitempty"`
	Videos    *Videos             `json:"videos,omitempty"`
	Telemetry map[string]any      `json:"telemetry,omitempty"`
}

// Limits are those of the whole process.
type Limits struct {
	Requests   int `json:"requests"`
	BodyMiB    int `json:"body_mib"`
	FailedKeys int `json:"failed_keys"`

	MemoryMiB       int `json:"memory_mib,omitempty"`
	Watchers        int `json:"watchers,omitempty"`
	ContentMiB      int `json:"content_mib,omitempty"`
	ContentFiles    int `json:"content_files,omitempty"`
	StoredResponses int `json:"stored_responses,omitempty"`
}

// Videos bounds the video jobs.
type Videos struct {
	Most int    `json:"most"`           // under way at a time
	Wait string `json:"wait,omitempty"` // until a client is answered that its job is queued, as a duration in text
}

// Shutdown bounds a graceful stop, as a duration in text.
type Shutdown struct {
	Grace string `json:"grace"`
}

// A Webhook is a server that receives an event when a video has ended.
type Webhook struct {
	URL    string   `json:"url"`
	Secret string   `json:"secret"`
	Events []string `json:"events,omitempty"`
	User   string   `json:"user,omitempty"`
	Allow  []string `json:"allow_networks,omitempty"`
}

// OAuth are the lifetimes of the authorization service, as durations in text.
type OAuth struct {
	CodeTTL      string `json:"code_ttl,omitempty"`
	RefreshGrace string `json:"refresh_grace,omitempty"`
}

// Admin is the API of administration.
type Admin struct {
	Token string `json:"token"`
}

// TestKey is the key of a Config that names none.
const TestKey = "sd-test"

// A Key is a gateway key fixed in the configuration.
type Key struct {
	Key  string `json:"key"`
	Name string `json:"name"`
	User string `json:"user,omitempty"` // whose account is charged
	// Scopes lists the permissions; nil: all.
	Scopes []string `json:"scopes,omitempty"`
}

// A Provider is an upstream.
type Provider struct {
	Shape    string    `json:"shape"`
	BaseURL  string    `json:"base_url,omitempty"`
	APIKeys  []string  `json:"api_keys,omitempty"`
	Retries  int       `json:"retries"`
	Timeouts *Timeouts `json:"timeouts,omitempty"`
	// Idempotent: it honours the keys of submissions.
	Idempotent bool `json:"idempotent,omitempty"`
	// PassUnknownResponses sends on a previous_response_id that the gateway does not know.
	PassUnknownResponses bool `json:"pass_unknown_responses,omitempty"`
}

// Timeouts are a provider's four clocks, as durations in text.
type Timeouts struct {
	Connect   string `json:"connect,omitempty"`
	FirstByte string `json:"first_byte,omitempty"`
	Idle      string `json:"idle,omitempty"`
	Total     string `json:"total,omitempty"`
}

// A Model is where a model name leads.
type Model struct {
	Targets []Target `json:"targets"`
	Price   *Price   `json:"price,omitempty"`
	Hedge   *Hedge   `json:"hedge,omitempty"`
	// List has the names that lists of models show for a pattern. Without it, they show none, so that the stand-ins
	// of providers are not asked for their lists.
	List []string `json:"list"`
}

// A Hedge says when a further target takes part in a request.
type Hedge struct {
	After string `json:"after"` // p95, or a duration in text
}

// A Price is in dollars, for a million tokens, an image and a second of video.
type Price struct {
	Input    float64 `json:"input"`
	Output   float64 `json:"output"`
	PerImage float64 `json:"per_image,omitempty"`

	PerSecond float64 `json:"per_second,omitempty"`
}

// A Target is a provider and the name it has for the model; * keeps the client's.
type Target struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Weight   int    `json:"weight,omitempty"`
}

// CatchAll sends every model name to one provider.
func CatchAll(p Provider) Config {
	return Config{
		Providers: map[string]Provider{"upstream": p},
		Models:    map[string]Model{"*": {Targets: []Target{{Provider: "upstream", Model: "*"}}}},
	}
}

func (c Config) encode() ([]byte, error) {
	c.Models = maps.Clone(c.Models)
	for name, m := range c.Models {
		if m.List == nil {
			m.List = []string{}
		}
		c.Models[name] = m
	}
	return json.MarshalIndent(c, "", "  ")
}
