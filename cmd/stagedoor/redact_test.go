package main

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"stagedoor/cmd/stagedoor/config"
	"stagedoor/providers/dialogue/dialoguetest"
)

func TestTheLogShowsNothingThatWasNotMeantToBeRead(t *testing.T) {
	const secret = "sk-must-stay-secret"
	holder := struct{ Key string }{secret}
	for _, c := range []struct {
		name string
		attr slog.Attr
		want string
	}{
		{"struct", slog.Any("v", holder), "(struct { Key string })"},
		{"pointer", slog.Any("v", &holder), "(*struct { Key string })"},
		{"bytes", slog.Any("v", []byte(secret)), "([]uint8)"},
		{"header", slog.Any("v", http.Header{"Authorization": {secret}}), "(http.Header)"},
		{"in a group", slog.Group("g", slog.Int("n", 7), slog.Any("v", holder)), "(struct { Key string })"},
		{"secret", slog.Any("v", config.Secret(secret)), "***"},
		{"named text", slog.Any("v", slog.LevelWarn), "WARN"},
		{"shape", slog.Any("v", dialoguetest.Chat), "chat"},
		{"error", slog.Any("v", errors.New("disk full")), "disk full"},
		{"code", slog.Any("v", any("rate_limit_exceeded")), "rate_limit_exceeded"},
		{"names", slog.Any("v", []string{"oauth", "log"}), "oauth"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for format, h := range map[string]func(*bytes.Buffer) slog.Handler{
				"json": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
				"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
			} {
				var b bytes.Buffer
				log := slog.New(redacting{h(&b)})
				log.LogAttrs(t.Context(), slog.LevelInfo, "request", c.attr)
				log.With(c.attr).Info("request")
				if got := b.String(); strings.Contains(got, secret) || strings.Count(got, c.want) != 2 {
					t.Errorf("%s: %s, want %q twice and no secret", format, got, c.want)
				}
			}
		})
	}
}
