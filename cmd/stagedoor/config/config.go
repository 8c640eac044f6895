// Package config reads the one configuration file: YAML, strict, every mistake
// reported at once with file, line, column and what was expected. It only reads
// and checks; assemble.go decides what the values mean.
//
// # Usage
//
// Load or Parse returns a Config in which every setting has a value, or Issues with all mistakes. CatalogProviders,
// CatalogModels, FixedKeys, Endpoints and Clients convert sections to the types of the packages that use them, so
// that no other package knows the file. Default is the configuration of a start without a file.
//
// A new setting is a field with the tags yaml and doc. enum lists the words that it takes, and required says that it
// must be given. The decoder, the reference, the pages and the names in messages all follow from the tags. Rules that
// a tag cannot express are in the check function of the section.
//
// # Errors
//
// A mistake never stops the reading, because an operator wants to mend all of them at once. A setting with a mistake
// is marked as broken, so that no later rule reports it a second time. Warnings are about what can be used and is
// probably not meant, and they never keep the gateway from starting.
//
// # Secrets
//
// A Secret shows itself as *** whatever prints it, and only Reveal returns it. Masked hides secrets in a text by the
// types of the settings, and it fails rather than show a text in which one could remain. Changes over pages and the
// API cannot bring in references to variables and files, since those would send secrets of the machine to an address
// of the administrator's choice (CheckEdits).
//
// # Files
//
//	config.go types.go              the settings and the notations of their values
//	cluster.go signin.go smtp.go    sections with their rules
//	state.go telemetry.go videos.go webhooks.go
//	decode.go expand.go issue.go    strict reading of YAML, variables and secret files, mistakes with their places
//	check.go advice.go              rules about several settings, warnings
//	catalog.go                      conversion to the catalogue, and the list of prices on disk
//	edit.go review.go changed.go    changes that keep all other bytes, their review, what differs
//	reference.go                    the page about all settings
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"time"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/http/web/mailer"
	"stagedoor/state/identity"
)

// Config is a configuration file with the environment filled in. The field
// tags are the file's names.
type Config struct {
	Listen    Strings       `yaml:"listen" doc:"addresses to listen on, host:port; several are allowed"`
	TLS       *TLS          `yaml:"tls" doc:"serve HTTPS with this certificate"`
	Proxies   Strings       `yaml:"trusted_proxies" doc:"addresses and networks of proxies in front, whose X-Forwarded-For names the client"`
	Data      string        `yaml:"data" doc:"directory of the durable state; memory keeps none"`
	Cluster   Cluster       `yaml:"cluster" doc:"a database for the state, in place of the data directory"`
	Keys      []Key         `yaml:"keys" doc:"keys fixed by the operator, beside those made by command"`
	Providers Map[Provider] `yaml:"providers" doc:"upstream providers by name"`
	Models    Map[Model]    `yaml:"models" doc:"model names or patterns (claude-*, *) and where they are served"`
	Limits    Process       `yaml:"limits" doc:"what the whole process takes on"`
	Backups   Backups       `yaml:"backups" doc:"backups of the store while the gateway runs"`
	Ledger    Ledger        `yaml:"ledger" doc:"the history of money"`
	Requests  RequestLog    `yaml:"request_log" doc:"the log of requests: its bounds and its place"`
	Recorded  Recordings    `yaml:"recordings" doc:"requests and replies of recorded keys"`
	Audit     Audit         `yaml:"audit" doc:"the audit log, which says who has changed what"`
	Catalog   Catalog       `yaml:"catalog" doc:"limits and prices of models that the file gives none"`
	Aliases   Map[string]   `yaml:"aliases" doc:"further names of paths, for unmodified clients: /vendor: /imagegen; the longest counts"`
	OAuth     OAuth         `yaml:"oauth" doc:"the authorization service for other people's apps"`
	SignIn    SignIn        `yaml:"sign_in" doc:"how people sign in to the pages"`
	SMTP      SMTP          `yaml:"smtp" doc:"a mail server, for invitations and links for passwords"`
	Admin     Admin         `yaml:"admin" doc:"the HTTP API of administration, below /admin/v1"`
	Videos    Videos        `yaml:"videos" doc:"video jobs"`
	Webhooks  []Webhook     `yaml:"webhooks" doc:"servers that receive an event when a video has ended"`
	Alerts    Alerts        `yaml:"alerts" doc:"where events about budgets, providers and the disk go"`
	Telemetry Telemetry     `yaml:"telemetry" doc:"traces and metrics, by OpenTelemetry"`
	Heartbeat Duration      `yaml:"heartbeat" doc:"a stream whose answer takes longer begins without it; 0: never"`
	// Clients of a gateway without it use HTTP.
	ResponsesWebSocket bool `yaml:"responses_websocket" doc:"serve responses over WebSockets; false: answer 426"`

	Log      Log      `yaml:"log" doc:"logging"`
	Shutdown Shutdown `yaml:"shutdown" doc:"graceful stop"`

	// Warnings are about what is no mistake and probably not meant. The file can be used.
	Warnings Issues
}

// TrustedProxies returns the networks of trusted_proxies.
func (c *Config) TrustedProxies() []netip.Prefix {
	networks, _ := identity.ParseNetworks(c.Proxies) // checked when the file was read
	return networks
}

// TLS names a certificate and its key.
type TLS struct {
	Cert string `yaml:"cert" doc:"PEM file of the certificate chain" required:"true"`
	Key  string `yaml:"key" doc:"PEM file of the private key" required:"true"`
}

// OAuth configures the authorization service.
type OAuth struct {
	Issuer        string   `yaml:"issuer" doc:"where browsers and apps reach the gateway, https://host without a path; default: the first address of listen"`
	AutoAuthorize string   `yaml:"auto_authorize" doc:"what an app's auto_authorize=true is worth: signing in is the consent, only an earlier consent counts, nothing" enum:"login,consented,never"`
	CodeTTL       Duration `yaml:"code_ttl" doc:"how long an authorization code lives, at most 10m"`
	RefreshGrace  Duration `yaml:"refresh_grace" doc:"how long a refresh token that was just used gets the same answer again; 0: never"`
	SessionTTL    Duration `yaml:"session_ttl" doc:"how long people stay signed in"`
	TopUpURL      string   `yaml:"topup_url" doc:"a top-up page of your own, in place of the gateway's"`
}

// AtStart is o without the settings that a running gateway takes over.
func (o OAuth) AtStart() OAuth { return o.With(&OAuth{}) }

// With is o with the settings of now that a running gateway takes over.
func (o OAuth) With(now *OAuth) OAuth {
	o.AutoAuthorize, o.TopUpURL = now.AutoAuthorize, now.TopUpURL
	return o
}

// Admin configures the HTTP API of administration.
type Admin struct {
	Token Secret `yaml:"token" doc:"what programs send as Authorization: Bearer; without one here and none made by command the API is off"`
	// A web administrator need not be the operator of the machine.
	Configure bool `yaml:"configure" doc:"administrators may change providers and models here"`

	User     string `yaml:"user" doc:"an administrator whom the gateway makes at its start, unless the user exists"`
	Password Secret `yaml:"password" doc:"the administrator's first password, 8 to 512 bytes; a change has no effect"`
}

// Process bounds the whole process.
type Process struct {
	MemoryMiB       int `yaml:"memory_mib" doc:"mebibytes of memory that the limits of 0 are shares of; 0: what the control group allows, else the machine's"`
	Requests        int `yaml:"requests" doc:"requests under way at a time, more are answered 503; 0: by the memory, at most 20000"`
	BodyMiB         int `yaml:"body_mib" doc:"mebibytes of request bodies held at a time, more are answered 503; 0: by the memory"`
	Watchers        int `yaml:"watchers" doc:"event streams, WebSockets and long polls at a time, more are answered 503; 0: by the memory, at most 4096"`
	ContentMiB      int `yaml:"content_mib" doc:"mebibytes of pictures that clients have addresses of, for 60 minutes, and of uploads for videos, more are answered 503; 0: any amount"`
	ContentFiles    int `yaml:"content_files" doc:"number of these pictures and uploads, more are answered 503; 0: any number"`
	StoredResponses int `yaml:"stored_responses" doc:"responses that one user, or key without a user, may have stored, more are answered 403; 0: any number"`
	Conversations   int `yaml:"conversations" doc:"conversations that one user, or key without a user, may keep, more are answered 403; 0: any number"`
	StoredMiB       int `yaml:"stored_mib" doc:"mebibytes of responses and conversations that one user, or key without a user, may have stored, more are answered 403; 0: any amount"`
	RepliesMiB      int `yaml:"replies_mib" doc:"mebibytes of finished replies kept for repeats; 0: any amount"`
	FailedKeys      int `yaml:"failed_keys" doc:"unknown keys that an address may send in a minute before it is answered 429; 0: any number"`
}

// Log says how to log.
type Log struct {
	Level  string `yaml:"level" doc:"debug, info, warn or error" enum:"debug,info,warn,error"`
	Format string `yaml:"format" doc:"text or json" enum:"text,json"`
}

// Shutdown bounds a graceful stop.
type Shutdown struct {
	Grace Duration `yaml:"grace" doc:"how long streams may go on after SIGTERM"`
}

// Key is a gateway key fixed in the file.
type Key struct {
	Key     Secret   `yaml:"key" doc:"the key clients send" required:"true"`
	Name    string   `yaml:"name" doc:"what it is called in logs" required:"true"`
	User    string   `yaml:"user" doc:"whose account is charged; none: no account"`
	Scopes  *Strings `yaml:"scopes" doc:"what it may do; absent or all: everything, []: nothing"`
	Models  *Strings `yaml:"models" doc:"model names or patterns it may use; absent: all"`
	Limits  KeyLimit `yaml:"limits" doc:"its own limits; 0: none"`
	AllowIP *Strings `yaml:"allow_ips" doc:"addresses or CIDR ranges it may come from; absent: any"`

	OnDisconnect string `yaml:"on_disconnect" doc:"default of X-On-Disconnect" enum:"cancel,finish,detach"`
}

// KeyLimit bounds one key.
type KeyLimit struct {
	RPM         int `yaml:"rpm" doc:"requests a minute"`
	TPM         int `yaml:"tpm" doc:"tokens a minute"`
	Concurrency int `yaml:"concurrency" doc:"requests at a time"`
}

// Provider is an upstream.
type Provider struct {
	Shape    string      `yaml:"shape" doc:"the shape it is spoken to in" required:"true" enum:"@shapes,sandbox"`
	Also     Strings     `yaml:"also" doc:"further shapes it serves; requests in one of them pass untouched" enum:"@shapes"`
	BaseURL  string      `yaml:"base_url" doc:"address below which the shape's paths lie"`
	Vendor   string      `yaml:"vendor" doc:"whose prices in the catalogue apply, * for a cloud; default: by the host of base_url"`
	APIKeys  []Secret    `yaml:"api_keys" doc:"any number of keys, used in turn"`
	Limits   Limits      `yaml:"limits" doc:"what the provider allows; 0: no limit"`
	Timeouts Timeouts    `yaml:"timeouts" doc:"clocks of one call"`
	Retries  *int        `yaml:"retries" doc:"further attempts after a failure, before the first byte"`
	Headers  Map[Secret] `yaml:"headers" doc:"sent with every call"`
	// Idempotent is a promise that vendors' documents do not make.
	Idempotent bool `yaml:"idempotent" doc:"it honours Idempotency-Key: a video that may have been submitted is submitted again"`
	// All clients of the gateway are one to the provider.
	PassUnknownResponses bool `yaml:"pass_unknown_responses" doc:"an unknown previous_response_id is passed on for every client, also if it belongs to another one"`
}

// Limits bound a provider.
type Limits struct {
	RPM          int      `yaml:"rpm" doc:"requests a minute"`
	TPM          int      `yaml:"tpm" doc:"tokens a minute"`
	Concurrency  int      `yaml:"concurrency" doc:"calls at a time"`
	Queue        int      `yaml:"queue" doc:"requests of one user, or key without a user, that may wait"`
	QueueTimeout Duration `yaml:"queue_timeout" doc:"how long one may wait"`
}

// Timeouts are the clocks of one call.
type Timeouts struct {
	Connect   Duration `yaml:"connect" doc:"TCP and TLS, each"`
	FirstByte Duration `yaml:"first_byte" doc:"until the response headers"`
	Idle      Duration `yaml:"idle" doc:"between two reads of the body"`
	Total     Duration `yaml:"total" doc:"the whole call"`
}

// Model is a name or pattern and where it is served.
type Model struct {
	Targets         []Target      `yaml:"targets" doc:"chosen by weight, then tried in order" required:"true"`
	Fallback        []Target      `yaml:"fallback" doc:"tried in order when all targets failed"`
	Hedge           *Hedge        `yaml:"hedge" doc:"let a second target take part when the first one is slow"`
	Aliases         Strings       `yaml:"aliases" doc:"further names of the same model"`
	List            Strings       `yaml:"list" doc:"a pattern's names in lists; default: those its providers list"`
	Capabilities    *Capabilities `yaml:"capabilities" doc:"what it can do, where its name does not tell"`
	MaxOutputTokens int           `yaml:"max_output_tokens" doc:"the most output tokens of one answer: what a missing max_tokens becomes where one is needed, and the most that is charged; 8192 if not given"`
	Price           *Price        `yaml:"price" doc:"what it costs"`
	OnDisconnect    string        `yaml:"on_disconnect" doc:"default of X-On-Disconnect" enum:"cancel,finish,detach"`
}

// Hedge says when a further target takes part in a request.
type Hedge struct {
	After HedgeAfter `yaml:"after" doc:"time without a first piece of reply; p95: that of 95 in 100" required:"true"`
	Most  int        `yaml:"most" doc:"further targets of one request, 1 to 3; default: 1"`
}

// Target is a model at a provider.
type Target struct {
	Provider        string        `yaml:"provider" doc:"name of a provider above" required:"true"`
	Model           string        `yaml:"model" doc:"its name there; * keeps the name asked for" required:"true"`
	Weight          *int          `yaml:"weight" doc:"share of the requests among the targets"`
	Capabilities    *Capabilities `yaml:"capabilities" doc:"as in models, for this target"`
	MaxOutputTokens int           `yaml:"max_output_tokens" doc:"as in models, for this target"`
	Price           *Price        `yaml:"price" doc:"as in models, for this target"`
	On              *Strings      `yaml:"on" doc:"of a fallback: the failures for which it is tried" enum:"@conditions"`
}

// Capabilities override what a model's name tells.
type Capabilities struct {
	StructuredOutputs *bool  `yaml:"structured_outputs" doc:"replies constrained to a JSON Schema"`
	ImagesIn          *bool  `yaml:"images_in" doc:"images in prompts"`
	FilesIn           *bool  `yaml:"files_in" doc:"documents in prompts"`
	AudioIn           *bool  `yaml:"audio_in" doc:"audio in prompts"`
	SystemTurns       *bool  `yaml:"system_turns" doc:"role system inside messages, else folded"`
	Sampling          *bool  `yaml:"sampling" doc:"temperature, top_p, top_k"`
	OneSampling       *bool  `yaml:"one_sampling" doc:"temperature and top_p are refused together"`
	NoForcedTools     *bool  `yaml:"no_forced_tools" doc:"a choice of tools that must be followed is refused"`
	AlwaysThinks      *bool  `yaml:"always_thinks" doc:"thinking cannot be switched off"`
	CallSignatures    *bool  `yaml:"call_signatures" doc:"gemini: calls in the history need a signature"`
	ContextWindow     int    `yaml:"context_window" doc:"tokens of prompt and reply together"`
	JSONSchema        *bool  `yaml:"json_schema" doc:"gemini: parametersJsonSchema and responseJsonSchema"`
	Prefill           *bool  `yaml:"prefill" doc:"a final assistant turn is continued"`
	WebSearch         *bool  `yaml:"web_search" doc:"chat: the model searches the web itself (web_search_options)"`
	NoTools           *bool  `yaml:"no_tools" doc:"the model cannot call tools"`
	NoCacheKey        *bool  `yaml:"no_cache_key" doc:"chat: prompt_cache_key is refused"`
	ReasoningContent  string `yaml:"reasoning_content" doc:"chat: earlier reasoning" enum:"taken,required,refused"`
	Thinking          string `yaml:"thinking" doc:"none, budget, effort or implicit" enum:"none,budget,effort,implicit"`
}

// Price is in dollars: per million tokens, per image, per second of video.
type Price struct {
	Input            Money `yaml:"input" doc:"a million input tokens"`
	Output           Money `yaml:"output" doc:"a million output tokens"`
	CachedInput      Money `yaml:"cached_input" doc:"a million input tokens read from a cache"`
	CacheWrite       Money `yaml:"cache_write" doc:"a million tokens written to a cache"`
	Reasoning        Money `yaml:"reasoning" doc:"a million reasoning tokens, where they differ from output"`
	CacheWrite1h     Money `yaml:"cache_write_1h" doc:"a million tokens written to a cache for an hour"`
	AudioInput       Money `yaml:"audio_input" doc:"a million tokens of sound in the prompt"`
	AudioCachedInput Money `yaml:"audio_cached_input" doc:"a million tokens of sound read from a cache"`
	AudioOutput      Money `yaml:"audio_output" doc:"a million tokens of sound in the reply"`
	ImageInput       Money `yaml:"image_input" doc:"a million tokens of images in the prompt"`
	ImageOutput      Money `yaml:"image_output" doc:"a million tokens of images in the reply"`
	WebSearch1k      Money `yaml:"web_search_1k" doc:"a thousand searches that the provider makes and reports"`
	PerImage         Money `yaml:"per_image" doc:"one image"`
	PerPartial       Money `yaml:"per_partial" doc:"one partial image of a stream; without it partial images cost nothing beside their picture"`
	PerSecond        Money `yaml:"per_second" doc:"one second of video"`
}

// Default is the configuration of `stagedoor serve` without a file: everything
// is answered by the embedded sandbox.
// Every setting that is not in a file has the value that stands here, so the documented defaults
// and those in force cannot differ: the reference page reads this function.
func Default() *Config {
	return &Config{
		Listen:    Strings{"127.0.0.1:8080"},
		Data:      "memory",
		Providers: Map[Provider]{{Name: "sandbox", Value: Provider{Shape: "sandbox"}}},
		Models: Map[Model]{
			{Name: "sandbox", Value: Model{Targets: []Target{{Provider: "sandbox", Model: "sandbox"}}}},
			{Name: "*", Value: Model{Targets: []Target{{Provider: "sandbox", Model: "*"}}}},
		},
		Limits: Process{ContentMiB: 4096, ContentFiles: 100_000, StoredResponses: 10_000, Conversations: 10_000,
			StoredMiB: 1024, RepliesMiB: 1024, FailedKeys: 300},
		Backups:  defaultBackups,
		Ledger:   defaultLedger,
		Admin:    Admin{Configure: true},
		Requests: defaultRequestLog, Recorded: defaultRecordings,
		Audit:   defaultAudit,
		Catalog: Catalog{Unknown: "serve"},
		Videos:  defaultVideos,
		SignIn:  SignIn{SecondFactor: "none"},
		SMTP:    SMTP{TLS: mailer.StartTLS},
		OAuth: OAuth{AutoAuthorize: "login", CodeTTL: Duration(time.Minute),
			SessionTTL: Duration(14 * 24 * time.Hour)},
		Telemetry: defaultTelemetry,
		Heartbeat: Duration(15 * time.Second),

		ResponsesWebSocket: true,
		Log:                Log{Level: "info", Format: "text"},
		Shutdown:           Shutdown{Grace: Duration(30 * time.Second)},
	}
}

// Load reads and checks a file. Its error is Issues: every mistake there is.
func Load(file string, env func(string) (string, bool)) (*Config, error) {
	text, err := Read(file)
	if err != nil {
		return nil, err
	}
	return Parse(file, text, env)
}

// ParseForCatalog is Parse for the command that replaces the list of models on disk: that list is not read, because it
// may be missing or broken.
func ParseForCatalog(file string, text []byte, env func(string) (string, bool)) (*Config, error) {
	return parse(file, text, env, false)
}

// DataOf returns the data directory that a text names, whatever mistakes the text has, or else the default.
// Commands use it to find the data directory of a gateway whose file has mistakes, since an
// operator then needs them most.
func DataOf(text []byte, env func(string) (string, bool)) string {
	c := &Config{Data: "./data"}
	newDecoder("", env).document(text, c)
	return c.Data
}

// Read reads the text of a file. Its error is Issues too.
func Read(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err == nil {
		return text, nil
	}
	var failed *fs.PathError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return nil, Issues{{File: file, Message: "expected a readable file: " + err.Error()}}
}

// Summary counts what the configuration has, for people.
func (c *Config) Summary() string {
	return fmt.Sprintf("%s, %s, %s", cli.Count(len(c.Providers), "provider"), cli.Count(len(c.Models), "model"),
		cli.Count(len(c.Keys), "key"))
}

// Parse is Load for a text; file is only named in errors.
func Parse(file string, text []byte, env func(string) (string, bool)) (*Config, error) {
	return parse(file, text, env, true)
}

// parse is Parse. It reads the list of models on disk if readList is set.
// Providers and models have no default in a file: a file that names none would otherwise serve the
// simulator in production.
func parse(file string, text []byte, env func(string) (string, bool), readList bool) (*Config, error) {
	c := Default()
	c.Data, c.Providers, c.Models = "./data", nil, nil
	d := newDecoder(file, env)
	d.document(text, c)
	c.Cluster.Fill(env)
	c.check(d, readList)
	if len(d.issues) > 0 {
		d.issues.sort()
		return nil, d.issues
	}
	d.advice.sort()
	c.Warnings = d.advice
	return c, nil
}
