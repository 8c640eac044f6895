package chunks

import "github.com/tidwall/gjson"

// StringList reads a value such as stop, which is a string or a list of strings.
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
