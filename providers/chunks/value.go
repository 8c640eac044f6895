package chunks

import "github.com/tidwall/gjson"

// Array is v if it is an array, else nothing: gjson's ForEach takes a scalar,
// null included, for a list of one.
func OnlyArray(v gjson.Result) gjson.Result {
	if v.IsArray() {
		return v
	}
	return gjson.Result{}
}

// Object is v if it is an object, else nothing.
func OnlyObject(v gjson.Result) gjson.Result {
	if v.IsObject() {
		return v
	}
	return gjson.Result{}
}
