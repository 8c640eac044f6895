package config

import "reflect"

// mostChanges bounds a line of the log.
const mostChanges = 50

// Changed returns the names of the settings that differ between two configurations, without their values: "limits", and
// "models.a" for an entry, with + if it is new and - if it is gone. It returns at most fifty, and then "...".
func Changed(before, after *Config) (names []string) {
	was, is := reflect.ValueOf(*before), reflect.ValueOf(*after)
	for i := range was.NumField() {
		name := was.Type().Field(i).Tag.Get("yaml")
		if name == "" || reflect.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()) {
			continue
		}
		// A section without names of its own is reported as a whole.
		if !isMapping(was.Field(i).Type()) {
			names = append(names, name)
			continue
		}
		old, now := entriesOf(was.Field(i)), entriesOf(is.Field(i))
		for j := range is.Field(i).Len() {
			entry := is.Field(i).Index(j).Field(0).String()
			if _, known := old[entry]; !known {
				names = append(names, "+"+join(name, entry))
			} else if !reflect.DeepEqual(old[entry], now[entry]) {
				names = append(names, join(name, entry))
			}
		}
		for j := range was.Field(i).Len() {
			entry := was.Field(i).Index(j).Field(0).String()
			if _, stays := now[entry]; !stays {
				names = append(names, "-"+join(name, entry))
			}
		}
	}
	if len(names) > mostChanges {
		names = append(names[:mostChanges:mostChanges], "...")
	}
	return names
}

// entriesOf returns the values of a Map by their names.
func entriesOf(m reflect.Value) map[string]any {
	entries := make(map[string]any, m.Len())
	for i := range m.Len() {
		entries[m.Index(i).Field(0).String()] = m.Index(i).Field(1).Interface()
	}
	return entries
}
