package cases

import (
	"regexp"
	"strings"
)

// opaque members hold the user's own data, whose names are not Google's to respell.
var opaque = set("args", "response", "parameters", "parametersJsonSchema", "responseSchema", "responseJsonSchema",
	"labels", "partMetadata")

var (
	snakeName  = regexp.MustCompile(`^[a-z]+(_[a-z]+)+$`)
	snakeBreak = regexp.MustCompile(`_([a-z])`)
)

// camelize brings a Gemini request to camelCase: Google accepts both spellings.
// cache_control is left as it is, since it has no business there and must be seen.
func camelize(v any) any {
	switch v := v.(type) {
	case array:
		out := make(array, len(v))
		for i, x := range v {
			out[i] = camelize(x)
		}
		return out
	case object:
		out := make(object, len(v))
		for k, x := range v {
			name := k
			if k != "cache_control" && snakeName.MatchString(k) {
				name = snakeBreak.ReplaceAllStringFunc(k, func(s string) string { return strings.ToUpper(s[1:]) })
			}
			if !opaque[name] {
				x = camelize(x)
			}
			out[name] = x
		}
		return out
	}
	return v
}
