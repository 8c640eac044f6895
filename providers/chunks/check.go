package chunks

import (
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
)

// Checker walks over a request and reads the fields that routing needs from both shapes. Each
// shape adds the rules of its own fields.
type Checker struct {
	*fields.Reader
	Head     shapes.Head
	HasModel bool
	// UsageSaid is set if stream_options is given, also as null. Options is set if it is an
	// object.
	UsageSaid, Options bool
}

// NewChecker returns a Checker for a body. The caller must call Free.
func NewChecker(body []byte, names *fields.Names) Checker {
	return Checker{Reader: fields.NewReader(body).Knowing(names), Head: shapes.Head{N: 1, MaxTokens: -1}}
}

// Walk calls field for each top-level field and returns the first error.
func (c *Checker) Walk(field func(name []byte) error) error {
	if c.Peek() != fields.Object {
		return dialogue.Invalid("body", "must be a JSON object")
	}
	if err := c.Object(field); err != nil {
		return err
	}
	if !c.Whole() {
		return dialogue.Invalid("body", "must be valid JSON")
	}
	return nil
}

// Model reads the field model into Head.
func (c *Checker) Model() (err error) {
	c.HasModel = true
	if c.Head.Model, err = c.Text(); err == nil && c.Head.Model == "" {
		return c.Broken("must not be empty")
	}
	if bad := dialogue.CheckModel("model", c.Head.Model); bad != nil {
		c.Head.Model = "" // the log of the refusal must not keep it either
		return bad
	}
	return err
}

// Choices reads the field n into Head.
func (c *Checker) Choices() error {
	return c.Count(1, MaxChoices, func(n int64) { c.Head.N = int(n) })
}

// StreamOptions reads the field stream_options.
func (c *Checker) StreamOptions() error {
	c.Options = true
	return c.Object(func(name []byte) error {
		switch string(name) {
		case "include_usage":
			return c.Switch(&c.Head.IncludeUsage)
		case "include_obfuscation":
			return fields.Nullable(fields.Of(fields.Bool))(c.Reader)
		}
		return nil
	})
}

// Switch reads a boolean or null. Null leaves into as it is.
func (c *Checker) Switch(into *bool) (err error) {
	if c.Null() {
		return nil
	}
	*into, err = c.Flag()
	return err
}

// Count reads an integer from lo to hi and calls found with it.
func (c *Checker) Count(lo, hi int64, found func(int64)) error {
	n, err := c.Int(lo, hi)
	if err == nil {
		found(n)
	}
	return err
}
