package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stagedoor/cmd/stagedoor/config"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/state"
	"stagedoor/state/identity"
)

func environment(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func parse(t *testing.T, text string, env ...string) *config.Config {
	t.Helper()
	c, err := config.Parse("test.yaml", []byte(text), environment(env...))
	if err != nil {
		t.Fatalf("not accepted:\n%v", err)
	}
	return c
}

// published is the form of the file that others write against, word for word.
const published = `listen: ["127.0.0.1:8080"]        # several addresses allowed; tls: {cert, key} optional
data: ./data                      # directory of the durable state; "memory" keeps none
keys:                             # keys fixed by the operator, beside those made by command
  - {key: "${SD_KEY}", name: ci, scopes: [all], models: ["*"], limits: {rpm: 0, tpm: 0, concurrency: 0},
     on_disconnect: finish}
providers:
  openai:    {shape: responses, also: [chat, completions, images, videos], base_url: "https://api.openai.com/v1", api_keys: ["${OPENAI_API_KEY}"],
              limits: {rpm: 500, tpm: 200000, concurrency: 64, queue: 256, queue_timeout: 20s},
              timeouts: {connect: 5s, first_byte: 60s, idle: 60s, total: 10m}, retries: 2}
  anthropic: {shape: messages, base_url: "https://api.anthropic.com", api_keys: ["a", "b"]}
  google:    {shape: gemini,   base_url: "https://generativelanguage.googleapis.com", api_keys: ["g"]}
  local:     {shape: chat,     base_url: "http://127.0.0.1:11434/v1"}
  sandbox:   {shape: sandbox}
models:
  gpt-5:         {targets: [{provider: openai, model: gpt-5}]}
  fast:          {targets: [{provider: openai, model: gpt-5-mini, weight: 3}, {provider: anthropic, model: claude-haiku-4-5, weight: 1}], fallback: [{provider: local, model: qwen3}]}
  claude-*:      {targets: [{provider: anthropic, model: "*"}]}     # "*" keeps the asked name
  "*":           {targets: [{provider: sandbox, model: "*"}]}
  priced:
    targets:
      - {provider: local, model: qwen3, max_output_tokens: 512, capabilities: {images_in: false}, price: {input: 0.1}}
    capabilities: {structured_outputs: true, images_in: true}
    max_output_tokens: 4096
    price: {input: 1.25, output: 10, cached_input: 0.125, per_image: 0.04, per_second: 0.000001}
`

func TestPublishedFormIsRead(t *testing.T) {
	c := parse(t, published, "SD_KEY", "sd-ci", "OPENAI_API_KEY", "sk-1")

	p := c.CatalogProviders()[0]
	if p.Name != "openai" || p.Shape != dialoguetest.Responses || len(p.Also) != 4 || p.Also[3] != "videos" || p.APIKeys[0] != "sk-1" || p.Retries != 2 {
		t.Errorf("provider openai is %+v", p)
	}
	if p.Limits.RPM != 500 || p.Limits.TPM != 200000 || p.Limits.Concurrency != 64 || p.Limits.Queue != 256 || p.Limits.QueueTimeout != 20*time.Second {
		t.Errorf("its limits are %+v", p.Limits)
	}
	if p.Timeouts.Connect != 5*time.Second || p.Timeouts.FirstByte != time.Minute || p.Timeouts.Idle != time.Minute || p.Timeouts.Total != 10*time.Minute {
		t.Errorf("its timeouts are %+v", p.Timeouts)
	}
	if keys := c.CatalogProviders()[1].APIKeys; len(keys) != 2 {
		t.Errorf("anthropic has the keys %q", keys)
	}

	m := c.CatalogModels()
	if m[1].Pattern != "fast" || m[1].Targets[0].Weight != 3 || m[1].Targets[1].Weight != 1 || m[1].Fallback[0].Provider != "local" {
		t.Errorf("model fast is %+v", m[1])
	}
	last := m[4]
	if price := last.Price; price.Input != 1_250_000 || price.Output != 10_000_000 || price.CachedInput != 125_000 || price.PerImage != 40_000 || price.PerSecond != 1 {
		t.Errorf("the price is %+v, want micro-dollars", price)
	}
	if !*last.Capabilities.StructuredOutputs || last.MaxOutputTokens != 4096 {
		t.Errorf("model priced is %+v", last)
	}
	if own := last.Targets[0]; *own.Capabilities.ImagesIn || own.MaxOutputTokens != 512 || own.Price.Input != 100_000 {
		t.Errorf("its target is %+v", own)
	}

	key := c.FixedKeys()[0]
	if key.Name != "ci" || key.OnDisconnect != identity.DisconnectFinish || key.Scopes != nil || key.Models != nil ||
		!key.Enabled {
		t.Errorf("the key is %+v, want one that may do everything", key)
	}
}

func TestEmptyFileTakesTheDefaults(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "listen:\ndata:\nlog:\n"} {
		c := parse(t, text)
		if c.Listen[0] != "127.0.0.1:8080" || c.Data != "./data" || c.Log.Level != "info" || c.Log.Format != "text" || time.Duration(c.Shutdown.Grace) != 30*time.Second {
			t.Errorf("%q is read as %+v", text, c)
		}
	}
	c := parse(t, "providers: {p: {shape: chat, base_url: \"http://localhost/v1\"}}\nmodels: {m: {targets: [{provider: p, model: m}]}}")
	if got := c.CatalogProviders()[0].Retries; got != 2 {
		t.Errorf("retries are %d, want 2", got)
	}
	if got := c.CatalogModels()[0].Targets[0].Weight; got != 1 {
		t.Errorf("the weight is %d, want 1", got)
	}
}

func TestHedgesReachTheCatalogue(t *testing.T) {
	const targets = "targets: [{provider: p, model: x}, {provider: p, model: y}]"
	models := parse(t, "providers: {p: {shape: sandbox}}\nmodels:\n  m: {"+targets+", hedge: {after: p95}}\n  n: {"+
		targets+", hedge: {after: 1500ms, most: 2}}\n  o: {"+targets+"}\n").CatalogModels()
	if got := models[0].Hedge; *got != (catalog.Hedge{Model: "m", Most: 1}) {
		t.Errorf("p95 is %+v", got)
	}
	if got := models[1].Hedge; *got != (catalog.Hedge{Model: "n", After: 1500 * time.Millisecond, Most: 2}) {
		t.Errorf("a time is %+v", got)
	}
	if models[2].Hedge != nil {
		t.Error("none is one")
	}
}

func TestConditionsAndWindowsReachTheCatalogue(t *testing.T) {
	m := parse(t, "providers: {p: {shape: sandbox}}\nmodels:\n  m: {targets: [{provider: p, model: x, "+
		"capabilities: {context_window: 8000}}], fallback: [{provider: p, model: y, on: [timeout, content_filter]}, "+
		"{provider: p, model: z, on: overloaded}, {provider: p, model: z}]}\n").CatalogModels()[0]
	if got := m.Targets[0].Capabilities.ContextWindow; got != 8000 {
		t.Errorf("the window is %d", got)
	}
	for i, want := range []catalog.Conditions{catalog.OnTimeout | catalog.OnContentFilter, catalog.OnOverloaded, 0} {
		if got := m.Fallback[i].On; got != want {
			t.Errorf("entry %d is for %q, want %q", i, got, want)
		}
	}
}

func TestScopesAbsentAllAndNone(t *testing.T) {
	for text, want := range map[string]int{"": -1, ", scopes: [all]": -1, ", scopes: []": 0, ", scopes: [chat, models]": 2, ", scopes: chat": 1} {
		c := parse(t, "keys: [{key: k, name: n"+text+"}]")
		got := c.FixedKeys()[0].Scopes
		if (got == nil) != (want < 0) || (want >= 0 && len(got) != want) {
			t.Errorf("%q gives %#v", text, got)
		}
	}
}

// Events that wait for delivery keep their webhook over restarts and reloads.
func TestAWebhookIsTheSameWhileAddressAndOwnerAre(t *testing.T) {
	const secret, other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "whsec_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"
	c := parse(t, "keys: [{key: k, name: n}]\nwebhooks:\n  - {url: \"https://h/x?t=1\", secret: "+secret+", allow_networks: 10.0.0.0/8}\n"+
		"  - {url: \"https://h/x?t=1\", secret: "+secret+", user: ann, events: video.failed}\n  - {url: \"https://h/x\", secret: "+secret+", key: n}\n")
	all := c.Endpoints()
	if len(all) != 3 || all[0].Owner != "" || all[1].Owner != state.OwnerOf("", "ann") || all[2].Owner != state.OwnerOf(c.FixedKeys()[0].ID, "") {
		t.Fatalf("%+v", all)
	}
	if all[0].Types != nil || len(all[1].Types) != 1 || len(all[0].Allow) != 1 || len(all[0].Key) != 24 {
		t.Errorf("%+v", all)
	}
	changed := parse(t, "webhooks: [{url: \"https://h/x?t=1\", secret: "+other+", user: ann}]").Endpoints()
	if changed[0].ID != all[1].ID || changed[0].ID == all[0].ID {
		t.Errorf("%s was %s", changed[0].ID, all[1].ID)
	}
}

// mistakes are files and the beginning of each line that must be reported, in
// the file's order, without any other.
var mistakes = map[string]struct {
	text string
	want []string
}{
	"unknown names and wrong types, all at once": {
		"listen: 8080\nlogs: {}\nproviders:\n  a: {shape: chatty, base_url: 1, retrys: 2}\nmodels:\n  m: {targets: {provider: a}}\nlog: {level: loud}\nshutdown: {grace: 5}\n",
		[]string{
			"f:1:9: listen: expected a string: put it in quotes",
			"f:2:1: logs: is not known, expected one of listen, tls, trusted_proxies, data, cluster, keys, providers, models, " +
				"limits, backups, ledger, request_log, recordings, audit, catalog, aliases, oauth, sign_in, smtp, " +
				"admin, videos, webhooks, alerts, telemetry, " +
				"heartbeat, responses_websocket, log, shutdown",
			`f:4:14: providers.a.shape: "chatty" is not known here, expected one of chat, responses,`,
			"f:4:32: providers.a.base_url: expected a string: put it in quotes",
			"f:4:35: providers.a.retrys: is not known, expected one of shape, also,",
			"f:6:16: models.m.targets: expected a list",
			`f:7:14: log.level: "loud" is not known here, expected one of debug, info, warn, error`,
			"f:8:19: shutdown.grace: expected a duration such as 20s, 5m or 30d",
		},
	},
	"types": {
		"keys:\n  - {key: [k], name: {}, limits: {rpm: many, tpm: 1.5, concurrency: -1}, scopes: [fly], allow_ips: [300.1.1.1]}\n" +
			"models:\n  m:\n    targets: []\n    capabilities: {images_in: 1}\n    price: {input: -1, output: 1e3, cached_input: 0.0000001, per_image: 1/2}\n    max_output_tokens: -4\n",
		[]string{
			"f:2:11: keys[0].key: expected a string",
			"f:2:22: keys[0].name: expected a string",
			"f:2:40: keys[0].limits.rpm: expected a whole number",
			"f:2:51: keys[0].limits.tpm: expected a whole number",
			"f:2:69: keys[0].limits.concurrency: expected 0 or more",
			`f:2:83: keys[0].scopes[0]: "fly" is not known here, expected all or some of chat`,
			"f:2:101: keys[0].allow_ips[0]: expected an address or a network",
			"f:5:14: models.m.targets: is empty, expected at least one target",
			"f:6:31: models.m.capabilities.images_in: expected true or false",
			"f:7:20: models.m.price.input: expected dollars",
			"f:7:32: models.m.price.output: expected dollars",
			"f:7:51: models.m.price.cached_input: expected dollars",
			"f:7:73: models.m.price.per_image: expected dollars",
			"f:8:24: models.m.max_output_tokens: expected 1 or more",
		},
	},
	"what becomes of requests": {
		"keys:\n  - {key: k, name: n, on_disconnect: stay}\n",
		[]string{`f:2:38: keys[0].on_disconnect: "stay" is not known here, expected one of cancel, finish, detach`},
	},
	"proxies": {
		"trusted_proxies: [\"127.0.0.1\", \"proxy\"]\n",
		[]string{"f:1:32: trusted_proxies[1]: expected an address or a network"},
	},
	"proxies that are everything": {
		"trusted_proxies: [\"10.0.0.0/8\", \"::/0\"]\n",
		[]string{"f:1:33: trusted_proxies[1]: expected networks of your proxies"},
	},
	"conditions of a fallback": {
		"providers: {p: {shape: sandbox}}\nmodels:\n  m:\n    targets:\n" +
			"      - {provider: p, model: x, on: [timeout]}\n    fallback:\n" +
			"      - {provider: p, model: y, on: [timeout, tired]}\n      - {provider: p, model: y, on: []}\n" +
			"      - {provider: p, model: y, on: overload}\n    capabilities: {context_window: -1}\n",
		[]string{
			"f:5:37: models.m.targets[0].on: is only for entries of fallback, expected none here",
			`f:7:47: models.m.fallback[0].on[1]: "tired" is not known here, expected one of ` +
				"context_length_exceeded, content_filter, unsupported,",
			"f:8:37: models.m.fallback[1].on: is empty, expected at least one condition",
			`f:9:37: models.m.fallback[2].on[0]: "overload" is not known here, expected one of`,
			"f:10:36: models.m.capabilities.context_window: expected 1 or more",
		},
	},
	"hedges": {
		"providers: {p: {shape: sandbox}}\nmodels:\n  m:\n    targets: [{provider: p, model: x}]\n" +
			"    fallback: [{provider: p, model: y, on: timeout}]\n    hedge: {after: p95}\n" +
			"  n:\n    targets: [{provider: p, model: x}, {provider: p, model: y}]\n" +
			"    hedge: {after: p99, most: 4}\n" +
			"  o:\n    targets: [{provider: p, model: x}, {provider: p, model: y}]\n" +
			"    hedge: {after: 0s, most: -1}\n" +
			"  q:\n    targets: [{provider: p, model: x}, {provider: p, model: y}]\n    hedge: {most: 1}\n",
		[]string{
			"f:6:12: models.m.hedge: expected a second target, or a fallback without on",
			"f:9:20: models.n.hedge.after: expected p95, or a duration such as 3s",
			"f:9:31: models.n.hedge.most: expected 1 to 3",
			"f:12:20: models.o.hedge.after: expected p95, or a duration such as 3s",
			"f:12:30: models.o.hedge.most: expected 1 to 3",
			"f:15:12: models.q.hedge.after: is missing, expected time without a first piece of the reply " +
				"before the second target is tried; p95: the 95th percentile of recent requests",
		},
	},
	"missing names": {
		"tls: {cert: c.pem}\nkeys:\n  - name: n\nproviders:\n  p:\n    base_url: http://h\n  q:\nmodels:\n  m:\n    fallback: []\n",
		[]string{
			"f:1:6: tls.key: is missing, expected PEM file of the private key",
			"f:3:5: keys[0].key: is missing, expected the key that clients send",
			"f:6:5: providers.p.shape: is missing, expected API shape in which requests are sent to the provider",
			"f:7:3: providers.q: is empty, expected a mapping",
			"f:10:5: models.m.targets: is missing, expected",
		},
	},
	"names that lead nowhere": {
		"providers: {p: {shape: sandbox}}\nmodels:\n  m: {targets: [{provider: p, model: x}, {provider: q, model: \"*-*\", weight: 0}], aliases: [n, n, \"a*\"]}\n  a**: {targets: [{provider: p, model: x}]}\n  n: {targets: [{provider: p, model: x}]}\n",
		[]string{
			`f:3:53: models.m.targets[1].provider: "q" is no provider of this file, expected one of p`,
			"f:3:63: models.m.targets[1].model: expected a name with one * at most",
			"f:3:78: models.m.targets[1].weight: expected 1 or more",
			`f:3:93: models.m.aliases[0]: "n" is another model's name`,
			`f:3:96: models.m.aliases[1]: "n" is another model's name`,
			"f:3:99: models.m.aliases[2]: expected an exact name",
			"f:4:8: models.a**: expected a name, or a pattern with one *",
		},
	},
	"names that are empty": {
		"keys: [{key: k, name: n, models: [\"\", a]}]\nmodels: {m: {targets: [{provider: p, model: \"\"}]}}\n",
		[]string{
			"f:1:35: keys[0].models[0]: is empty, expected a name or a pattern such as gpt-*",
			`f:2:35: models.m.targets[0].provider: "p" is no provider of this file, expected one of those under providers, where there are none`,
			"f:2:45: models.m.targets[0].model: is empty, " +
				"expected name of the model at the provider; * keeps the requested name",
		},
	},
	"required and empty": {
		"tls: {cert: \"\", key: }\nkeys: [{key: , name: ''}]\nproviders: {p: {shape: \"\"}, q: {shape: , base_url: x}}\nmodels: {m: {targets: [{provider: , model: x}]}}\n",
		[]string{
			"f:1:13: tls.cert: is empty, expected PEM file of the certificate chain",
			"f:1:21: tls.key: is empty, expected PEM file of the private key",
			"f:2:13: keys[0].key: is empty, expected the key that clients send",
			"f:2:22: keys[0].name: is empty, expected name in lists and logs",
			"f:3:24: providers.p.shape: is empty, expected API shape in which requests are sent to the provider",
			"f:3:39: providers.q.shape: is empty, expected API shape in which requests are sent to the provider",
			"f:4:34: models.m.targets[0].provider: is empty, expected name of a provider in providers",
		},
	},
	"no strings": {
		"data: 1\nkeys: [{key: 0123, name: true, scopes: {}, models: [1.10]}]\nproviders: {p: {shape: chat, base_url: \"http://h\", api_keys: [.inf], headers: {x: 5}}}\n",
		[]string{
			"f:1:7: data: expected a string: put it in quotes",
			"f:2:14: keys[0].key: expected a string: put it in quotes",
			"f:2:26: keys[0].name: expected a string: put it in quotes",
			"f:2:40: keys[0].scopes: expected a string",
			"f:2:53: keys[0].models[0]: expected a string: put it in quotes",
			"f:3:63: providers.p.api_keys[0]: expected a string: put it in quotes",
			"f:3:83: providers.p.headers.x: expected a string: put it in quotes",
		},
	},
	"secrets that cannot be sent": {
		"keys: [{key: \"a b\", name: n}, {key: \"${LINE}\", name: m}]\nproviders: {p: {shape: chat, base_url: \"http://h\", api_keys: [\"${A:-b}\", \"${}\", \"k\\n\", \"é\"]}}\n",
		[]string{
			"f:1:14: keys[0].key: expected printable characters without spaces",
			"f:1:37: keys[1].key: expected printable characters without spaces",
			"f:2:63: providers.p.api_keys[0]: expected ${NAME}",
			"f:2:74: providers.p.api_keys[1]: expected ${NAME}",
			"f:2:81: providers.p.api_keys[2]: expected printable characters without spaces",
			"f:2:88: providers.p.api_keys[3]: expected printable characters without spaces",
		},
	},
	"copies and history": {
		"data: memory\nproviders: {p: {shape: sandbox}}\nmodels: {m: {targets: [{provider: p, model: x}]}}\n" +
			"backups: {dir: b, every: 1s, keep: 0}\nledger: {keep: 1h}\n" +
			"request_log: {keep: 1s, mib: 1, store: database}\n" +
			"recordings: {keep: 1s, mib: 0, exchanges: 0}\n",
		[]string{
			"f:4:16: backups.dir: expected none: data: memory has nothing to copy",
			"f:4:26: backups.every: expected 1m or more",
			"f:4:36: backups.keep: expected 1 to 10000",
			"f:5:16: ledger.keep: expected 24h or more, or 0: for ever",
			"f:6:21: request_log.keep: expected 1h or more, or 0: there is no log",
			"f:6:30: request_log.mib: expected 16 to 1048576",
			"f:6:40: request_log.store: expected file or none, because without cluster.store there is no database",
			"f:7:20: recordings.keep: expected 1m or more, or 0: nothing is kept",
			"f:7:29: recordings.mib: expected 1 to 1048576",
			"f:7:43: recordings.exchanges: expected 1 to 100000",
		},
	},
	"a database for the state": {
		"data: memory\nproviders: {p: {shape: sandbox}}\nmodels: {m: {targets: [{provider: p, model: x}]}}\n" +
			"cluster: {store: \"mysql://h\", node: \"a b\"}\nbackups: {dir: b}\n",
		[]string{
			"f:1:7: data: expected a directory: with cluster.store it has the files and the socket for commands",
			"f:4:18: cluster.store: expected a URL that begins with postgres://",
			"f:4:37: cluster.node: expected up to 128 letters, digits and . _ -",
			"f:5:16: backups.dir: expected none: with cluster.store the tools of the database make backups",
		},
	},
	"a node without a database": {
		"data: d\nproviders: {p: {shape: sandbox}}\nmodels: {m: {targets: [{provider: p, model: x}]}}\n" +
			"cluster: {node: a}\n",
		[]string{"f:4:10: cluster.store: expected the URL of a database, because cluster.node is set"},
	},
	"a stand-by without a database": {
		"data: d\nproviders: {p: {shape: sandbox}}\nmodels: {m: {targets: [{provider: p, model: x}]}}\n" +
			"cluster: {standby: true}\n",
		[]string{"f:4:10: cluster.store: expected the URL of a database, because cluster.standby is set"},
	},
	"a listener for other gateways where there are none": {
		"data: d\nproviders: {p: {shape: sandbox}}\nmodels: {m: {targets: [{provider: p, model: x}]}}\n" +
			"cluster: {store: \"postgres://h/d\", listen: \"10.0.0.5:7900\"}\n",
		[]string{"f:4:44: cluster.listen: expected none, because without cluster.serve: all one gateway"},
	},
	"an address of no listener": {
		"data: d\nproviders: {p: {shape: sandbox}}\nmodels: {m: {targets: [{provider: p, model: x}]}}\n" +
			"cluster: {store: \"postgres://h/d\", serve: all, address: \"h:1\"}\n",
		[]string{"f:4:57: cluster.address: expected none, because cluster.listen is not set"},
	},
	"a listener that no other gateway can reach": {
		"data: d\nproviders: {p: {shape: sandbox}}\nmodels: {m: {targets: [{provider: p, model: x}]}}\n" +
			"cluster: {store: \"postgres://h/d\", serve: all, listen: \"0.0.0.0:7900\"}\n",
		[]string{"f:4:10: cluster.address: expected the host that the other gateways reach"},
	},
	"files of several gateways without a database": {
		"data: d\nproviders: {p: {shape: sandbox}}\nmodels: {m: {targets: [{provider: p, model: x}]}}\n" +
			"cluster: {files: /mnt/files}\n",
		[]string{"f:4:10: cluster.store: expected the URL of a database, because cluster.files is set"},
	},
	"twice": {
		"data: a\ndata: b\nkeys: [{key: k, name: n}, {key: k, name: n}]\nproviders:\n  p: {shape: sandbox}\n  p: {shape: sandbox}\n",
		[]string{
			"f:2:1: data: is given twice",
			"f:3:33: keys[1].key: is the same as another key",
			`f:3:42: keys[1].name: "n" is another key's name`,
			"f:6:3: providers.p: is given twice",
		},
	},
	"environment and files": {
		"keys:\n  - {key: \"${NONE}\", name: n}\nproviders:\n  p: {shape: chat, base_url: \"http://${NONE}\", api_keys: [\"${EMPTY}\", \"file:/no/such\", \"file:${DIR}\"], headers: {\"a b\": x, ok: \"${NONE}\"}}\n",
		[]string{
			"f:2:11: keys[0].key: the environment variable NONE is not set",
			"f:4:30: providers.p.base_url: the environment variable NONE is not set",
			"f:4:59: providers.p.api_keys[0]: the environment variable EMPTY is empty",
			"f:4:71: providers.p.api_keys[1]: expected a readable file with the secret in it: /no/such: no such file or directory",
			"f:4:88: providers.p.api_keys[2]: expected a readable file with the secret in it: / is not a file",
			"f:4:121: providers.p.headers.a b: expected the name of a header",
			"f:4:128: providers.p.headers.ok: the environment variable NONE is not set",
		},
	},
	"lists of patterns": {
		"providers: {p: {shape: sandbox}}\nmodels:\n  m: {targets: [{provider: p, model: x}], list: [m]}\n" +
			"  g-*: {targets: [{provider: p, model: x}], list: [g-1, h-1, g-*]}\n",
		[]string{
			"f:3:50: models.m.list[0]: is only for patterns",
			"f:4:57: models.g-*.list[1]: expected an exact name that the pattern matches",
			"f:4:62: models.g-*.list[2]: expected an exact name that the pattern matches",
		},
	},
	"not YAML":       {"listen: [a\n", []string{"f:1:9: expected valid YAML: sequence end token ']' not found"}},
	"not a mapping":  {"- a\n", []string{"f:1:1: expected a mapping (name: value)"}},
	"two documents":  {"data: a\n---\ndata: b\n", []string{"f:3:1: expected one document, here begins another"}},
	"unknown anchor": {"data: *a\n", []string{"f:1:7: data: expected a value, or the name of an anchor"}},
	"merge":          {"log:\n  <<: {level: info}\n", []string{"f:2:3: log: expected names; merging (<<) is not supported"}},
	"authorization service": {
		"oauth: {issuer: \"https://auth.example.com/\", auto_authorize: always, code_ttl: 11m, refresh_grace: 6m, session_ttl: 1s, topup_url: pay}\n",
		[]string{
			"f:1:17: oauth.issuer: expected an address without path",
			`f:1:62: oauth.auto_authorize: "always" is not known here, expected one of login, consented, never`,
			"f:1:80: oauth.code_ttl: expected 1s to 10m",
			"f:1:100: oauth.refresh_grace: expected 0s to 5m",
			"f:1:117: oauth.session_ttl: expected 1m or more",
			"f:1:132: oauth.topup_url: expected an address",
		},
	},
	"providers of sign-ins": {
		"sign_in:\n  providers:\n    A: {issuer: \"http://idp.example.com\", client_id: c, domains: [\"@x\"]}\n" +
			"    b: {issuer: \"https://idp.example.com\", groups: {staff: \"\"}}\n" +
			"    c: {issuer: \"https://idp.example.com\", client_id: c, administrators: [\"\"]}\n",
		[]string{
			"f:3:8: sign_in.providers.A: expected a name of 1 to 32 small letters, digits and -",
			"f:3:17: sign_in.providers.A.issuer: expected an https address without query",
			"f:3:66: sign_in.providers.A.domains: expected domains such as example.com",
			"f:4:8: sign_in.providers.b.client_id: is missing",
			"f:4:60: sign_in.providers.b.groups.staff: expected the name of a group of this gateway",
			"f:5:8: sign_in.providers.c: expected names of groups",
			"f:5:17: sign_in.providers.c.issuer: is that of \"b\" too, expected another one",
		},
	},
	"places": {
		"sign_in: {places: /no/such}\n", []string{"f:1:19: sign_in.places: expected a file with cities or countries"},
	},
	"mails": {
		"smtp: {host: \"smtp.example.com:25\", port: 70000, tls: none, user: gateway, password: p, from: Stagedoor}\n",
		[]string{
			"f:1:14: smtp.host: expected a host without port",
			"f:1:43: smtp.port: expected 1 to 65535",
			"f:1:55: smtp.tls: expected starttls or implicit, because the password would be sent in the clear",
			"f:1:95: smtp.from: expected an address",
		},
	},
	"mails without a server": {
		"smtp: {from: gateway@example.com}\n",
		[]string{"f:1:7: smtp: expected host, without which no mails are sent"},
	},
	"alerts": {
		"keys: [{key: k, name: n}]\n" +
			"alerts: {url: ftp://h, secret: whsec_c2hvcnQ=, events: [video.failed], allow_networks: [x]}\n",
		[]string{
			"f:2:15: alerts.url: expected an address without user and fragment",
			"f:2:32: alerts.secret: expected whsec_ and then 24 to 64 random bytes",
			`f:2:57: alerts.events[0]: "video.failed" is not known here`,
			"f:2:89: alerts.allow_networks[0]: expected an address or a network",
		},
	},
	"alerts by mail": {
		"keys: [{key: k, name: n}]\nalerts: {mail: Ops <ops@h>, secret: whsec_c2hvcnQ=}\n",
		[]string{
			"f:2:9: alerts: expected url",
			"f:2:16: alerts.mail: expected an address without a name",
		},
	},
	"alerts by mail without a server": {
		"keys: [{key: k, name: n}]\nalerts: {mail: ops@h}\n", []string{"f:2:16: alerts.mail: expected the setting smtp"},
	},
	"alerts without an address": {
		"keys: [{key: k, name: n}]\nalerts: {events: [disk.filling]}\n", []string{"f:2:9: alerts: expected url"},
	},
	"webhooks": {
		"keys: [{key: k, name: n, user: u}]\nwebhooks:\n  - {url: ftp://h, secret: whsec_c2hvcnQ=, events: [video.begun], user: u, key: n, allow_networks: [everywhere]}\n" +
			"  - {url: \"https://a@h/\", secret: hidden, key: n}\n  - {url: \"https://h/\", key: m}\n" +
			"  - {url: \"https://h/x\", secret: whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA}\n  - {url: \"https://h/x\", secret: whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA}\n",
		[]string{
			"f:3:11: webhooks[0].url: expected an address without user and fragment",
			"f:3:28: webhooks[0].secret: expected whsec_ and then 24 to 64 random bytes",
			`f:3:53: webhooks[0].events[0]: "video.begun" is not known here`,
			"f:3:81: webhooks[0].key: expected either user or key",
			"f:3:101: webhooks[0].allow_networks[0]: expected an address or a network",
			"f:4:11: webhooks[1].url: expected an address without user and fragment",
			"f:4:35: webhooks[1].secret: expected whsec_",
			`f:4:48: webhooks[1].key: "n" belongs to a user`,
			"f:5:5: webhooks[2].secret: is missing",
			`f:5:30: webhooks[2].key: "m" is no key of this file`,
			"f:7:11: webhooks[4].url: is another webhook's for the same events",
		},
	},
	"limits of the process": {
		"limits: {requests: -1, body_mib: -2, failed_keys: -3, content_mib: -4}\n",
		[]string{
			"f:1:20: limits.requests: expected 0 or more",
			"f:1:34: limits.body_mib: expected 0 or more",
			"f:1:51: limits.failed_keys: expected 0 or more",
			"f:1:68: limits.content_mib: expected 0 or more",
		},
	},
	"no certificate":  {"tls: {cert: /no/such, key: /no/such}\n", []string{"f:1:6: tls: expected a certificate and its key"}},
	"nothing to hear": {"listen: []\ndata: ''\n", []string{"f:1:9: listen: expected an address", "f:2:7: data: expected a directory"}},
	"ports":           {"listen: [\"a:b\", \":70000\", \"x\", \":0\"]\n", []string{"f:1:10: listen[0]", "f:1:17: listen[1]", "f:1:27: listen[2]"}},
}

func TestEveryMistakeIsReportedWithItsPlaceAndWhatWasExpected(t *testing.T) {
	for name, c := range mistakes {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("f", []byte(c.text), environment("EMPTY", "", "DIR", "/", "LINE", "k\n"))
			var issues config.Issues
			if !errors.As(err, &issues) {
				t.Fatalf("got %v, want issues", err)
			}
			got := strings.Split(err.Error(), "\n")
			for i := range max(len(got), len(c.want)) {
				switch {
				case i >= len(c.want):
					t.Errorf("also reported: %s", got[i])
				case i >= len(got):
					t.Errorf("not reported: %s", c.want[i])
				case !strings.HasPrefix(got[i], c.want[i]):
					t.Errorf("got  %s\nwant %s", got[i], c.want[i])
				}
			}
		})
	}
}

func TestFileThatCannotBeReadIsAnIssueOfItsOwn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "none.yaml")
	_, err := config.Load(file, environment())
	var issues config.Issues
	if !errors.As(err, &issues) || err.Error() != file+": expected a readable file: no such file or directory" {
		t.Errorf("got %v", err)
	}
}

func TestSecretsComeFromFilesAndTheEnvironmentAndAreNotReadTwice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("  from-${file}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := parse(t, `keys: [{key: "file:${AT}", name: n}, {key: "${TRICKY}", name: o}, {key: "a${B}c", name: p}]`,
		"AT", file, "TRICKY", "file:/etc/passwd", "B", "b")
	for i, want := range []string{"from-${file}", "file:/etc/passwd", "abc"} {
		if got := c.Keys[i].Key.Reveal(); got != want {
			t.Errorf("key %d is %q, want %q", i, got, want)
		}
	}
}

func TestAnchorsAndAliasesAreFollowed(t *testing.T) {
	c := parse(t, "providers:\n  a: &up {shape: chat, base_url: \"http://a/v1\", timeouts: &clocks {idle: 3s}}\n  b: *up\n  c: {shape: chat, base_url: \"http://c/v1\", timeouts: *clocks}\n")
	for _, p := range c.CatalogProviders() {
		if p.Timeouts.Idle != 3*time.Second || p.Shape != dialoguetest.Chat {
			t.Errorf("provider %s is %+v", p.Name, p)
		}
	}
}

// FuzzParse: whatever the file, there is a configuration or a list of mistakes
// that have a place in it.
func FuzzParse(f *testing.F) {
	f.Add(published)
	for _, c := range mistakes {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "file:") {
			return // the machine's files are none of a fuzzer's business
		}
		c, err := config.Parse("f", []byte(text), environment("SD_KEY", "k"))
		if err == nil {
			c.CatalogModels()
			c.FixedKeys()
			return
		}
		var issues config.Issues
		if !errors.As(err, &issues) || len(issues) == 0 {
			t.Fatalf("got %v, want issues", err)
		}
		for _, i := range issues {
			if i.Line < 1 || i.Message == "" {
				t.Errorf("issue without place or message: %+v", i)
			}
		}
	})
}
