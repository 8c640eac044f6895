// Package modelname translates between the two names that a media model has: the name in the
// gateway's documents and the vendor's name (decisions.md, names). Clients may use either.
package modelname

import "strings"

// Public returns the documents' name of a media model from its vendor's name. It returns other
// names unchanged.
func Public(model string) string { return replaceFamily(model, 1, 0) }

// Vendor returns the vendor's name of a media model from the documents' name. It returns other
// names unchanged.
func Vendor(model string) string { return replaceFamily(model, 0, 1) }

var families = [][2]string{{"video-", "sora-"}, {"gen-image-", "gpt-image-"}, {"legacy-image-", "dall-e-"}}

// replaceFamily replaces one vendor's name of a family of models by another one's. from and to are the places of the
// vendors in families.
func replaceFamily(model string, from, to int) string {
	for _, names := range families {
		if rest, ok := strings.CutPrefix(model, names[from]); ok {
			return names[to] + rest
		}
	}
	return model
}
