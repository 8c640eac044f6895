package chunks

import "github.com/tidwall/gjson"

// Strings reads a string or a list of strings, as stop is written.
func StringList(v gjson.Result) []string {
	if !v.IsArray() {
		return []string{v.String()}
	}
	var list []string
	OnlyArray(v).ForEach(func(_, s gjson.Result) bool {
		list = append(list, s.String())
		return true
	})
	return list
}
