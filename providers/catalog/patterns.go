package catalog

// Patterns returns the names with a * as they are configured, in that sequence. A client can send any name that one of
// them matches, so pages and lists show them beside the exact names of Models.
func (c *Catalog) Patterns() []string {
	var all []string
	for _, e := range c.entries {
		if e.pattern {
			all = append(all, e.name)
		}
	}
	return all
}
