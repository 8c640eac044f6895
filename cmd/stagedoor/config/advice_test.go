package config

import (
	"strings"
	"testing"
)

func warningsOf(t *testing.T, text string) string {
	t.Helper()
	c, err := Parse("f", []byte("data: memory\n"+text), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Warnings) == 0 {
		return ""
	}
	return c.Warnings.Error()
}

// Each row is a file that can be used and is probably not meant, with what the warning says, or "" for none.
func TestConfigCheckWarnsOfWhatIsProbablyNotMeant(t *testing.T) {
	provider := func(settings string) string {
		return "providers: {p: {" + settings + "}}\n" +
			"models: {m: {targets: [{provider: p, model: x}], price: {input: 1}}}\n"
	}
	const openai = `shape: chat, base_url: "https://api.openai.com/v1"`
	for name, c := range map[string]struct{ text, want string }{
		"empty":        {"", "there are no models"},
		"a short key":  {provider("shape: sandbox") + "keys: [{key: secret, name: n}]\n", "keys[0].key: has fewer than 20"},
		"a long key":   {provider("shape: sandbox") + "keys: [{key: sd-0123456789abcdef0123, name: n}]\n", ""},
		"no version":   {provider(`shape: chat, base_url: "https://api.openai.com"`), "has no version"},
		"a version":    {provider(`shape: chat, base_url: "https://api.openai.com/v1/"`), ""},
		"another path": {provider(`shape: chat, base_url: "https://h.example/openai/v1beta/x"`), ""},
		"an endpoint": {provider(`shape: chat, base_url: "https://h.example/v1/chat/completions"`),
			"ends with /chat/completions"},
		"a version twice": {provider(`shape: messages, base_url: "https://api.anthropic.com/v1"`),
			"ends with /v1, which the gateway adds itself"},
		"none needed": {provider(`shape: messages, base_url: "https://api.anthropic.com"`), ""},
		"another vendor's key": {provider(openai + `, api_keys: [sk-ant-abc]`),
			"api_keys[0]: looks like a key of anthropic"},
		"a router's key":    {provider(openai + `, api_keys: [sk-or-v1-abc]`), "looks like a key of openrouter"},
		"the vendor's key":  {provider(openai + `, api_keys: [sk-proj-abc]`), ""},
		"a key of ours":     {provider(openai + `, api_keys: [sd-abc]`), "key of this gateway"},
		"a host of its own": {provider(`shape: chat, base_url: "http://10.0.0.1/v1", api_keys: [sk-ant-abc]`), ""},
		"a path with a model": {provider(`shape: gemini, base_url: "https://h.example/v1beta/models/m:generateContent"`),
			"ends with /models/m:generateContent"},
		"a key for no model": {provider("shape: sandbox") +
			"keys: [{key: sd-0123456789abcdef0123, name: n, models: [n, m, g*]}]\n",
			`keys[0].models[0]: "n" is no model of this file`},
		"an unknown vendor": {provider(openai + ", vendor: opnai"), "no vendor of the catalogue (did you mean openai?)"},
		"a plain webhook": {provider("shape: sandbox") + "webhooks: [{url: \"http://h.example/x\", secret: " +
			"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA}]\n", "webhooks[0].url: events are sent without encryption"},
		"a plain issuer": {provider("shape: sandbox") + "oauth: {issuer: \"http://ai.example.com\"}\n",
			"oauth.issuer: passwords, codes and tokens are sent without encryption"},
		"a plain issuer on loopback": {provider("shape: sandbox") + "oauth: {issuer: \"http://localhost:8080\"}\n", ""},
		"no price": {strings.Replace(provider(`shape: chat, base_url: "http://10.0.0.1/v1"`), ", price: {input: 1}", "", 1),
			`no price is known of "x" at provider "p"`},
		"a listed price": {strings.Replace(strings.Replace(provider(openai),
			", price: {input: 1}", "", 1), "model: x", "model: gpt-5", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := warningsOf(t, c.text)
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if strings.Contains(got, "sk-ant-abc") || strings.Contains(got, "sd-abc") {
				t.Errorf("a key is shown: %s", got)
			}
		})
	}
}

func TestAWrongNameIsAnsweredWithTheNameThatItResembles(t *testing.T) {
	_, err := Parse("f", []byte("modles: {}\nlisten: [\"127.0.0.1:99999\"]\nproviders: {openai: {shape: chta"+
		", base_url: \"https://h:70000/v1\"}}\nmodels: {m: {targets: [{provider: opnai, model: x}]}, zebra: {}}\n"+
		"keys: [{key: sd-0123456789abcdef0123, name: ci, scopes: [chta]}]\n"+
		"webhooks: [{url: \"https://h:70000/x\", key: cj, secret: whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA}]\n"+
		"oauth: {topup_url: \"https://h:99999/\"}\ntelemetry: {traces: {otlp: {endpoint: \"http://h:70000\"}}}\n"+
		"cluster: {store: \"postgres://h:70000/x\"}\n"),
		func(string) (string, bool) { return "", false })
	if err == nil {
		t.Fatal("the file is accepted")
	}
	for _, want := range []string{"did you mean models?", "did you mean chat?", "did you mean openai?",
		"listen[0]: expected host:port", "base_url: expected the provider's address",
		"keys[0].scopes[0]: \"chta\" is not known here", "imagegen, embeddings, models (did you mean chat?)",
		"webhooks[0].url: ", "\"cj\" is no key of this file (did you mean ci?)", "oauth.topup_url: expected an address",
		"telemetry.traces.otlp.endpoint: ", "cluster.store: expected a URL"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
}
