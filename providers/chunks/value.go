package chunks

import "github.com/tidwall/gjson"

// OnlyArray returns v if it is an array, else the zero Result. Use it before ForEach, which takes
// a scalar, null included, for a list of one.
func OnlyArray(v gjson.Result) gjson.Result {
	if v.IsArray() {
		return v
	}
	return gjson.Result{}
}

// OnlyObject returns v if it is an object, else the zero Result.
func OnlyObject(v gjson.Result) gjson.Result {
	if v.IsObject() {
		return v
	}
	return gjson.Result{}
}
