package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"stagedoor/cmd/stagedoor/config"
)

func TestSecretsNeverShowThemselves(t *testing.T) {
	const secret = "sk-very-secret"
	c := parse(t, `keys: [{key: "`+secret+`", name: n}]
providers: {p: {shape: chat, base_url: "http://a", api_keys: ["`+secret+`"], headers: {x: "`+secret+`"}}}`)

	var shown []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10s", "%T"} {
		shown = append(shown, fmt.Sprintf(verb, *c), fmt.Sprintf(verb, c.Keys[0].Key),
			fmt.Sprintf(verb, &c.Keys[0].Key))
	}
	asJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("m", "config", c, "secret", c.Keys[0].Key, "keys", c.Providers[0].Value.APIKeys)
	}
	shown = append(shown, string(asJSON), string(asYAML), log.String(), fmt.Sprint(c.Keys[0].Key),
		c.Keys[0].Key.String())
	for _, s := range shown {
		if strings.Contains(s, secret) || strings.Contains(s, fmt.Sprintf("%x", secret)) {
			t.Errorf("shown: %s", s)
		}
	}
	if got := c.Keys[0].Key.Reveal(); got != secret {
		t.Errorf("revealed %q, want the secret", got)
	}
}

func TestDurationsMayBeInDays(t *testing.T) {
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "1d12h": 36 * time.Hour, "48h": 48 * time.Hour} {
		if got := time.Duration(parse(t, "ledger: {keep: "+text+"}").Ledger.Keep); got != want {
			t.Errorf("%s is %s", text, got)
		}
	}
	for _, text := range []string{"d", "1.5d", "-1d", "1d-1h", "100001d", "1h1d"} {
		_, err := config.Parse("f", []byte("ledger: {keep: "+text+"}"), environment())
		if err == nil || !strings.Contains(err.Error(), "ledger.keep: expected a duration such as 20s, 5m or 30d") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestMoneyIsExact(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1": 1_000_000, "0.1": 100_000, "1.25": 1_250_000, "0.000001": 1, "9000000000000.999999": 9_000_000_000_000_999_999, "2.": 2_000_000, `"3.5"`: 3_500_000} {
		c := parse(t, "providers: {s: {shape: sandbox}}\nmodels: {m: {targets: [{provider: s, model: x}], price: {input: "+text+"}}}")
		if got := c.CatalogModels()[0].Price.Input; got != want {
			t.Errorf("%s dollars are %d micro-dollars, want %d", text, got, want)
		}
	}
}
