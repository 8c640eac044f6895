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
//	edit*.go review.go changed.go   changes that keep all other bytes, their review, what differs
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
	Listen    Strings       `yaml:"listen" doc:"addresses to listen on, host:port; more than one is allowed"`
	TLS       *TLS          `yaml:"tls" doc:"serve HTTPS with this certificate"`
	Proxies   Strings       `yaml:"trusted_proxies" doc:"addresses and networks of reverse proxies whose X-Forwarded-For header is trusted"`
	Data      string        `yaml:"data" doc:"directory of the durable state; memory keeps none"`
	Cluster   Cluster       `yaml:"cluster" doc:"a database for the state, in place of the data directory"`
	Keys      []Key         `yaml:"keys" doc:"keys of the file, beside those created by command or on pages"`
	Providers Map[Provider] `yaml:"providers" doc:"upstream providers by name"`
	Models    Map[Model]    `yaml:"models" doc:"model names or patterns (claude-*, *) and their targets"`
	Limits    Process       `yaml:"limits" doc:"limits of the whole process"`
	Backups   Backups       `yaml:"backups" doc:"backups of the store while the gateway runs"`
	Ledger    Ledger        `yaml:"ledger" doc:"retention of ledger entries and receipts"`
	Requests  RequestLog    `yaml:"request_log" doc:"size, retention and place of the log of requests"`
	Recorded  Recordings    `yaml:"recordings" doc:"requests and replies of recorded keys"`
	Audit     Audit         `yaml:"audit" doc:"retention of the audit log"`
	Catalog   Catalog       `yaml:"catalog" doc:"limits and prices of models for which the file has none"`
	Aliases   Map[string]   `yaml:"aliases" doc:"path prefixes for unmodified clients, for example /vendor: /imagegen; the longest prefix wins"`
	OAuth     OAuth         `yaml:"oauth" doc:"the OAuth 2.0 service for third-party apps"`
	SignIn    SignIn        `yaml:"sign_in" doc:"sign-in to the pages"`
	SMTP      SMTP          `yaml:"smtp" doc:"mail server for invitations and password links"`
	Admin     Admin         `yaml:"admin" doc:"the admin API, below /admin/v1"`
	Videos    Videos        `yaml:"videos" doc:"video jobs"`
	Webhooks  []Webhook     `yaml:"webhooks" doc:"endpoints that receive an event when a video job ends"`
	Alerts    Alerts        `yaml:"alerts" doc:"destinations of alerts about budgets, providers and the disk"`
	Telemetry Telemetry     `yaml:"telemetry" doc:"OpenTelemetry traces and metrics"`
	Heartbeat Duration      `yaml:"heartbeat" doc:"time after which a stream begins with keep-alives if the answer has not begun; 0: never"`
	// Clients of a gateway without it use HTTP.
	ResponsesWebSocket bool `yaml:"responses_websocket" doc:"serve responses over WebSockets; false: answer 426"`

	Log      Log      `yaml:"log" doc:"logging"`
	Shutdown Shutdown `yaml:"shutdown" doc:"graceful stop"`

	// Warnings are about what is no mistake and probably not meant. The file can be used.
	Warnings Issues

	// Text is the YAML that the configuration was read from, with its secrets.
	Text []byte
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
	Issuer        string   `yaml:"issuer" doc:"address at which browsers and apps reach the gateway, https://host without a path; default: the first address of listen"`
	AutoAuthorize string   `yaml:"auto_authorize" doc:"meaning of auto_authorize=true: login takes the sign-in as consent, consented accepts only an earlier consent, never ignores it" enum:"login,consented,never"`
	CodeTTL       Duration `yaml:"code_ttl" doc:"lifetime of an authorization code, at most 10m"`
	RefreshGrace  Duration `yaml:"refresh_grace" doc:"time for which a refresh token that was used gets the same answer again, at most 5m; 0: never"`
	SessionTTL    Duration `yaml:"session_ttl" doc:"lifetime of a session"`
	TopUpURL      string   `yaml:"topup_url" doc:"address of your own top-up page, in place of the gateway's"`
}

// AtStart returns o without the settings that a reload puts in force, so that two configurations can be compared in
// those that need a restart.
func (o OAuth) AtStart() OAuth { return o.With(&OAuth{}) }

// With returns o with those settings of now that a reload puts in force.
func (o OAuth) With(now *OAuth) OAuth {
	o.AutoAuthorize, o.TopUpURL = now.AutoAuthorize, now.TopUpURL
	return o
}

// Admin configures the HTTP API of administration.
type Admin struct {
	Token Secret `yaml:"token" doc:"token that programs send as Authorization: Bearer; the API is off if there is none here and none was created by command"`
	// A web administrator need not be the operator of the machine.
	Configure bool `yaml:"configure" doc:"administrators may change providers and models on pages and by the API"`

	User     string `yaml:"user" doc:"administrator that the gateway creates at its start if the user does not exist"`
	Password Secret `yaml:"password" doc:"first password of that administrator, 8 to 512 bytes; later changes have no effect"`
}

// Process bounds the whole process.
type Process struct {
	MemoryMiB       int `yaml:"memory_mib" doc:"memory in MiB from which limits of 0 are derived; 0: the limit of the control group, or else the memory of the machine"`
	Requests        int `yaml:"requests" doc:"requests in flight; further ones get 503; 0: derived from the memory, at most 20000"`
	BodyMiB         int `yaml:"body_mib" doc:"MiB of request bodies in memory; further ones get 503; 0: derived from the memory"`
	Watchers        int `yaml:"watchers" doc:"event streams, WebSockets and long polls; further ones get 503; 0: derived from the memory, at most 4096"`
	ContentMiB      int `yaml:"content_mib" doc:"MiB of generated pictures, which are kept for 60 minutes, and of uploads for videos; further ones get 503; 0: no limit"`
	ContentFiles    int `yaml:"content_files" doc:"number of these pictures and uploads; further ones get 503; 0: no limit"`
	StoredResponses int `yaml:"stored_responses" doc:"stored responses of one user, or of a key without a user; further ones get 403; 0: no limit"`
	Conversations   int `yaml:"conversations" doc:"conversations of one user, or of a key without a user; further ones get 403; 0: no limit"`
	StoredMiB       int `yaml:"stored_mib" doc:"MiB of stored responses and conversations of one user, or of a key without a user; further ones get 403; 0: no limit"`
	RepliesMiB      int `yaml:"replies_mib" doc:"MiB of finished replies that are kept for repeated requests; 0: no limit"`
	FailedKeys      int `yaml:"failed_keys" doc:"requests with an unknown key per minute from one address; further ones get 429; 0: no limit"`
}

// Log says how to log.
type Log struct {
	Level  string `yaml:"level" doc:"debug, info, warn or error" enum:"debug,info,warn,error"`
	Format string `yaml:"format" doc:"text or json" enum:"text,json"`
}

// Shutdown bounds a graceful stop.
type Shutdown struct {
	Grace Duration `yaml:"grace" doc:"time for streams to finish after SIGTERM"`
}

// Key is a gateway key fixed in the file.
type Key struct {
	Key     Secret   `yaml:"key" doc:"the key that clients send" required:"true"`
	Name    string   `yaml:"name" doc:"name in lists and logs" required:"true"`
	User    string   `yaml:"user" doc:"user whose account is charged; none: no account"`
	Scopes  *Strings `yaml:"scopes" doc:"permitted kinds of requests; absent or all: every kind, []: none"`
	Models  *Strings `yaml:"models" doc:"names or patterns of permitted models; absent: all"`
	Limits  KeyLimit `yaml:"limits" doc:"limits of the key; 0: no limit"`
	AllowIP *Strings `yaml:"allow_ips" doc:"addresses or CIDR ranges from which the key is accepted; absent: any"`

	OnDisconnect string `yaml:"on_disconnect" doc:"default for the header X-On-Disconnect" enum:"cancel,finish,detach"`
}

// KeyLimit bounds one key.
type KeyLimit struct {
	RPM         int `yaml:"rpm" doc:"requests per minute"`
	TPM         int `yaml:"tpm" doc:"tokens per minute"`
	Concurrency int `yaml:"concurrency" doc:"concurrent requests"`
}

// Provider is an upstream.
type Provider struct {
	Shape    string      `yaml:"shape" doc:"API shape in which requests are sent to the provider" required:"true" enum:"@shapes,sandbox"`
	Also     Strings     `yaml:"also" doc:"further shapes that the provider serves; requests in one of these shapes are not translated" enum:"@shapes"`
	BaseURL  string      `yaml:"base_url" doc:"base address of the provider's API; the paths of the shape are appended"`
	Vendor   string      `yaml:"vendor" doc:"vendor in the catalogue whose prices apply; * for a cloud that serves models of several vendors; default: by the host of base_url"`
	APIKeys  []Secret    `yaml:"api_keys" doc:"the gateway's keys at the provider, used in turn"`
	Limits   Limits      `yaml:"limits" doc:"the provider's rate limits for the gateway; 0: no limit"`
	Timeouts Timeouts    `yaml:"timeouts" doc:"timeouts of one call"`
	Retries  *int        `yaml:"retries" doc:"largest number of further attempts after a failure, before the first byte of the reply"`
	Headers  Map[Secret] `yaml:"headers" doc:"headers sent with every call"`
	// Idempotent is a promise that vendors' documents do not make.
	Idempotent bool `yaml:"idempotent" doc:"the provider honours Idempotency-Key, so the gateway may submit a video again if it does not know whether the first submission arrived"`
	// All clients of the gateway are one to the provider.
	PassUnknownResponses bool `yaml:"pass_unknown_responses" doc:"pass an unknown previous_response_id on to the provider, for every client, even if it belongs to another client"`
}

// Limits bound a provider.
type Limits struct {
	RPM          int      `yaml:"rpm" doc:"requests per minute"`
	TPM          int      `yaml:"tpm" doc:"tokens per minute"`
	Concurrency  int      `yaml:"concurrency" doc:"concurrent calls"`
	Queue        int      `yaml:"queue" doc:"largest number of waiting requests of one user, or of a key without a user"`
	QueueTimeout Duration `yaml:"queue_timeout" doc:"longest wait of a request in the queue"`
}

// Timeouts are the clocks of one call.
type Timeouts struct {
	Connect   Duration `yaml:"connect" doc:"time for the TCP connection, and the same for the TLS handshake"`
	FirstByte Duration `yaml:"first_byte" doc:"time until the response headers"`
	Idle      Duration `yaml:"idle" doc:"time between two reads of the body"`
	Total     Duration `yaml:"total" doc:"time of the whole call"`
}

// Model is a name or pattern and where it is served.
type Model struct {
	Targets         []Target      `yaml:"targets" doc:"targets; the first one is chosen by weight, the others are tried in order after a failure" required:"true"`
	Fallback        []Target      `yaml:"fallback" doc:"targets that are tried in order when all of targets have failed"`
	Hedge           *Hedge        `yaml:"hedge" doc:"send the request to a second target as well if the first one is slow"`
	Aliases         Strings       `yaml:"aliases" doc:"further names of the model"`
	List            Strings       `yaml:"list" doc:"names that lists show for a pattern; default: those its providers list"`
	Capabilities    *Capabilities `yaml:"capabilities" doc:"capabilities of the model, if they cannot be derived from its name"`
	MaxOutputTokens int           `yaml:"max_output_tokens" doc:"largest number of output tokens of one answer: the value of a missing max_tokens where the shape needs one, and the largest number that is charged; 8192 if not given"`
	Price           *Price        `yaml:"price" doc:"price of the model"`
	OnDisconnect    string        `yaml:"on_disconnect" doc:"default for the header X-On-Disconnect" enum:"cancel,finish,detach"`
}

// Hedge says when a further target takes part in a request.
type Hedge struct {
	After HedgeAfter `yaml:"after" doc:"time without a first piece of the reply before the second target is tried; p95: the 95th percentile of recent requests" required:"true"`
	Most  int        `yaml:"most" doc:"largest number of further targets, 1 to 3; default: 1"`
}

// Target is a model at a provider.
type Target struct {
	Provider        string        `yaml:"provider" doc:"name of a provider in providers" required:"true"`
	Model           string        `yaml:"model" doc:"name of the model at the provider; * keeps the requested name" required:"true"`
	Weight          *int          `yaml:"weight" doc:"share of the requests among the targets"`
	Capabilities    *Capabilities `yaml:"capabilities" doc:"as in models, for this target"`
	MaxOutputTokens int           `yaml:"max_output_tokens" doc:"as in models, for this target"`
	Price           *Price        `yaml:"price" doc:"as in models, for this target"`
	On              *Strings      `yaml:"on" doc:"of a fallback: the failures for which it is tried" enum:"@conditions"`
}

// Capabilities override what a model's name tells.
type Capabilities struct {
	StructuredOutputs *bool  `yaml:"structured_outputs" doc:"structured outputs: replies that follow a JSON Schema"`
	ImagesIn          *bool  `yaml:"images_in" doc:"images in prompts"`
	FilesIn           *bool  `yaml:"files_in" doc:"documents in prompts"`
	AudioIn           *bool  `yaml:"audio_in" doc:"audio in prompts"`
	SystemTurns       *bool  `yaml:"system_turns" doc:"system messages between other messages; otherwise they are merged into the neighbouring turns"`
	Sampling          *bool  `yaml:"sampling" doc:"accepts temperature, top_p and top_k"`
	SamplingAtRest    *bool  `yaml:"sampling_at_rest" doc:"accepts temperature and top_p while it does not reason"`
	OneSampling       *bool  `yaml:"one_sampling" doc:"refuses temperature and top_p in the same request"`
	NoForcedTools     *bool  `yaml:"no_forced_tools" doc:"refuses a tool_choice that forces a tool"`
	AlwaysThinks      *bool  `yaml:"always_thinks" doc:"thinking cannot be switched off"`
	CallSignatures    *bool  `yaml:"call_signatures" doc:"gemini: tool calls in the history need a thought signature"`
	ContextWindow     int    `yaml:"context_window" doc:"largest number of tokens of prompt and reply together"`
	JSONSchema        *bool  `yaml:"json_schema" doc:"gemini: parametersJsonSchema and responseJsonSchema"`
	Prefill           *bool  `yaml:"prefill" doc:"continues a final assistant turn"`
	WebSearch         *bool  `yaml:"web_search" doc:"chat: the model searches the web itself (web_search_options)"`
	NoTools           *bool  `yaml:"no_tools" doc:"the model cannot call tools"`
	NoCacheKey        *bool  `yaml:"no_cache_key" doc:"chat: refuses prompt_cache_key"`
	ReasoningContent  string `yaml:"reasoning_content" doc:"chat: reasoning_content of earlier turns" enum:"taken,required,refused"`
	Thinking          string `yaml:"thinking" doc:"way in which thinking is controlled" enum:"none,budget,effort,implicit"`
}

// Price is in dollars: per million tokens, per image, per second of video.
type Price struct {
	Input            Money `yaml:"input" doc:"price of a million input tokens"`
	Output           Money `yaml:"output" doc:"price of a million output tokens"`
	CachedInput      Money `yaml:"cached_input" doc:"price of a million input tokens read from a cache"`
	CacheWrite       Money `yaml:"cache_write" doc:"price of a million tokens written to a cache"`
	Reasoning        Money `yaml:"reasoning" doc:"price of a million reasoning tokens, if their price differs from that of output tokens"`
	CacheWrite1h     Money `yaml:"cache_write_1h" doc:"price of a million tokens written to a cache for an hour"`
	AudioInput       Money `yaml:"audio_input" doc:"price of a million tokens of sound in the prompt"`
	AudioCachedInput Money `yaml:"audio_cached_input" doc:"price of a million tokens of sound read from a cache"`
	AudioOutput      Money `yaml:"audio_output" doc:"price of a million tokens of sound in the reply"`
	ImageInput       Money `yaml:"image_input" doc:"price of a million tokens of images in the prompt"`
	ImageOutput      Money `yaml:"image_output" doc:"price of a million tokens of images in the reply"`
	WebSearch1k      Money `yaml:"web_search_1k" doc:"price of a thousand searches that the provider makes and reports"`
	PerImage         Money `yaml:"per_image" doc:"price of one image"`
	PerPartial       Money `yaml:"per_partial" doc:"price of one partial image of a stream; without it partial images cost nothing beside their picture"`
	PerSecond        Money `yaml:"per_second" doc:"price of one second of video"`
}

// Default returns the configuration of `stagedoor serve` without a file, in which the embedded sandbox answers
// everything. A setting that is not in a file has the value that stands here. The reference page reads this function,
// so the documented defaults and those in force cannot differ.
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

// ParseForCatalog does what Parse does, for the command that replaces the list of models on disk. It does not read that
// list, because the list may be missing or broken.
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

// Parse does what Load does for a text that was read already. file is only named in errors.
func Parse(file string, text []byte, env func(string) (string, bool)) (*Config, error) {
	return parse(file, text, env, true)
}

// parse does the work of Parse. It reads the list of models on disk only if readList is set.
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
