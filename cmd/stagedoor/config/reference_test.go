package config_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"stagedoor/cmd/stagedoor/config"
)

func reference(t *testing.T) string {
	t.Helper()
	var page strings.Builder
	if err := config.Reference(&page); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

func TestReferenceShowsEverySettingWithItsMeaning(t *testing.T) {
	page := reference(t)
	seen := make(map[reflect.Type]bool)
	var requestContext func(typ reflect.Type)
	requestContext = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice:
			requestContext(typ.Elem())
		case reflect.Struct:
			if seen[typ] {
				return
			}
			seen[typ] = true
			for i := range typ.NumField() {
				f := typ.Field(i)
				if name := f.Tag.Get("yaml"); name != "" {
					meaning, _, _ := strings.Cut(f.Tag.Get("doc"), "; default: ")
					row := regexp.MustCompile(`(?m)^\| \[?` + "`" + name + "`" + `.* \| .+ \| .* \| ` +
						regexp.QuoteMeta(strings.NewReplacer("*", `\*`).Replace(meaning)) + ` \|$`)
					if meaning == "" || !row.MatchString(page) {
						t.Errorf("%s of %s is not described", name, typ.Name())
					}
				}
				requestContext(f.Type)
			}
		}
	}
	requestContext(reflect.TypeFor[config.Config]())
}

func TestReferencesDefaultsAreThoseOfTheGateway(t *testing.T) {
	page := reference(t)
	for _, row := range []string{
		"| `listen` | list of texts | 127.0.0.1:8080 |",
		"| `grace` | duration | 30s |",
		"| `keep` | duration | 90d |",
		"| `requests` | whole number | 0 |",
		"| `first_byte` | duration | 1m |",
		"| `weight` | whole number | 1 |",
		"| `level` | `debug`, `info`, `warn`, `error` | info |",
		"| `provider` | text | required |",
		"| `sample` | share, 0 to 1 | OTEL_TRACES_SAMPLER, else all |",
		"| `max_output_tokens` | whole number | 8192 |",
		"| [`fallback`](#modelsnametargets) | list of settings |  |",
	} {
		if !strings.Contains(page, row) {
			t.Errorf("the page lacks %q", row)
		}
	}
}
