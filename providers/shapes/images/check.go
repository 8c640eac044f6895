package images

import (
	"slices"
	"strings"
	"unicode/utf8"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
)

// Name is the name of the shape.
const Name dialogue.Shape = "images"

// known lists the parameters that the neutral form has, and the parameters of edits that hold
// pictures.
var known = map[string]bool{
	"model":              true,
	"prompt":             true,
	"n":                  true,
	"size":               true,
	"quality":            true,
	"response_format":    true,
	"output_format":      true,
	"output_compression": true,
	"background":         true,
	"stream":             true,
	"partial_images":     true,
	"moderation":         true,
	"style":              true,
	"input_fidelity":     true,
	"user":               true,
	"image":              true,
	"image[]":            true,
	"images":             true,
	"mask":               true,
}

// Models of requests that name none.
const (
	legacyDefault = "legacy-image-2"
	modernDefault = "gen-image-1"
	editDefault   = "gen-image-1.5"
)

// Resolve returns the catalogue's name of a model. The rules of a model depend on that name and
// not on an alias.
type Resolve func(model string) string

// CheckGeneration decodes the JSON of a generation. It returns an error for the first rule of the
// model that it breaks, in the vendor's order. body must be valid JSON and must not
// change afterwards, because the Request keeps it.
func CheckGeneration(body []byte, resolve Resolve) (*picture.Request, error) {
	in := newDocument(body)
	r, err := check(in, picture.Generate, resolve)
	if err != nil {
		return nil, err
	}
	r.Body = body
	return r, nil
}

// checker checks the parameters of a request in the documented order.
type checker struct {
	in     input
	family *family
	r      *picture.Request
}

// check returns the request in the neutral form, or the error for the first parameter that breaks a rule of
// its model. in hides whether the client sent JSON or a form, so that both have the same rules and errors.
func check(in input, op picture.Operation, resolve Resolve) (*picture.Request, error) {
	c := &checker{in: in, r: &picture.Request{Inbound: Name, Operation: op, N: 1}}
	model, err := c.model()
	if err != nil {
		return nil, err
	}
	c.r.Model = model
	c.family = familyOf(resolve(model))
	c.r.Refusal = c.family.moderation
	for _, step := range []func() error{c.prompt, c.count, c.size, c.quality, c.delivery, c.format, c.background, c.stream, c.words, c.refused} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	c.r.Extra = in.rest(known)
	return c.r, nil
}

// model returns the name of the model. If the request names none, the other parameters say which
// family it is for.
func (c *checker) model() (string, error) {
	model, err := c.in.text("model")
	bad := dialogue.CheckModel("model", model)
	switch {
	case bad != nil:
		return "", bad
	case err != nil || model != "":
		return model, err
	case c.in.given("model"):
		return "", dialogue.Invalid("model", "must not be empty")
	case c.r.Operation == picture.Edit:
		return editDefault, nil
	case c.modern():
		return modernDefault, nil
	}
	return legacyDefault, nil
}

// modern reports whether the request has a parameter, or a value of one, that only gen-image models have. The
// vendor's reference makes the default model depend on that.
func (c *checker) modern() bool {
	if slices.ContainsFunc(modern, c.uses) {
		return true
	}
	size, _ := c.in.text("size")
	quality, _ := c.in.text("quality")
	return size != "" && families[0].size(size) != "" && families[1].size(size) != "" ||
		slices.Contains([]string{"low", "medium", "high"}, quality)
}

// uses reports whether a parameter is given. stream false and partial_images 0 count as not given.
func (c *checker) uses(name string) bool {
	switch name {
	case "partial_images":
		n, err := c.in.integer(name, 0, 3)
		return n > 0 || err != nil
	case "stream":
		on, err := c.in.flag(name)
		return on || err != nil
	}
	return c.in.given(name)
}

// prompt checks the prompt, whose length is bounded in characters.
func (c *checker) prompt() error {
	prompt, err := c.in.text("prompt")
	switch n := utf8.RuneCountInString(prompt); {
	case err != nil:
		return err
	case !c.in.given("prompt"):
		return dialogue.Missing("prompt")
	case strings.TrimSpace(prompt) == "":
		return dialogue.Invalid("prompt", "must not be empty")
	case n > c.family.prompt:
		return dialogue.Invalid("prompt",
			"must not be longer than "+count(c.family.prompt, "character")+" for this model")
	}
	c.r.Prompt = prompt
	return nil
}

// count checks n, the number of pictures.
func (c *checker) count() error {
	if !c.in.given("n") {
		return nil
	}
	n, err := c.in.integer("n", 1, 10)
	switch {
	case err != nil:
		return err
	case int(n) > c.family.images:
		return dialogue.Invalid("n", "must be 1 for this model")
	}
	c.r.N = int(n)
	return nil
}

// size checks the size. auto leaves the choice to the model.
func (c *checker) size() error {
	size, err := c.in.text("size")
	if err != nil {
		return err
	}
	if !c.in.given("size") || size == "auto" { // every model has a size of its own
		return nil
	}
	if rule := c.family.size(size); rule != "" {
		return dialogue.Invalid("size", rule)
	}
	c.r.Size, _ = picture.ParseSize(size)
	return nil
}

func (c *checker) quality() (err error) {
	c.r.Quality, err = c.word("quality", c.family.qualities...)
	return err
}

// delivery decides whether the client gets the picture or an address. The modern models always return the
// picture itself and do not know response_format. The word b64_json is accepted for them all the same, because it asks
// for what they do.
func (c *checker) delivery() error {
	if slices.Contains(c.family.refuses, "response_format") {
		c.r.Inline = true
		if form, err := c.in.text("response_format"); err != nil || form == "b64_json" {
			return err // an SDK sends b64_json for every model
		}
		return c.unknown("response_format")
	}
	form, err := c.word("response_format", "url", "b64_json")
	c.r.Inline = form == "b64_json" || form == "" && !c.family.legacy
	return err
}

// format checks output_format and output_compression, which only lossy formats have.
func (c *checker) format() error {
	var err error
	if c.r.OutputFormat, err = c.own("output_format", "png", "jpeg", "webp"); err != nil {
		return err
	}
	if err := c.unknown("output_compression"); err != nil || !c.in.given("output_compression") {
		return err
	}
	n, err := c.in.integer("output_compression", 0, 100)
	if err != nil {
		return err
	}
	if n != 100 && (c.r.OutputFormat == "" || c.r.OutputFormat == "png") {
		return dialogue.Invalid("output_compression", "must be 100 unless output_format is jpeg or webp")
	}
	c.r.Compression = new(int(n))
	return nil
}

// background checks the background. Only some formats and models can be transparent.
func (c *checker) background() (err error) {
	if c.r.Background, err = c.own("background", "auto", "transparent", "opaque"); err != nil ||
		c.r.Background != "transparent" {
		return err
	}
	switch {
	case c.family.opaque:
		return dialogue.Invalid("background", "this model makes no transparent background")
	case c.r.OutputFormat == "jpeg":
		return dialogue.Invalid("background", "a transparent background needs output_format png or webp")
	}
	return nil
}

// stream checks stream and partial_images, and the parameters that exclude a stream.
func (c *checker) stream() error {
	on, err := c.in.flag("stream")
	if err != nil {
		return err
	}
	if on {
		if err := c.unknown("stream"); err != nil {
			return err
		}
	}
	c.r.Stream = on
	n, err := c.in.integer("partial_images", 0, 3)
	if err != nil {
		return err
	}
	if n > 0 { // 0 is the default, with and without a stream
		if err := c.unknown("partial_images"); err != nil {
			return err
		}
	}
	switch {
	case n > 0 && !on:
		return dialogue.Invalid("partial_images", "needs stream true")
	case on && c.r.N > 1:
		// The events do not say to which image they belong.
		return dialogue.Invalid("n", "must be 1 when stream is true")
	case on && !c.r.Inline:
		return dialogue.Invalid("response_format", "must be b64_json when stream is true")
	}
	c.r.Partials = int(n)
	return nil
}

// words reads and checks the parameters with a closed list of words, and user.
func (c *checker) words() (err error) {
	if c.r.Moderation, err = c.own("moderation", "low", "auto"); err != nil {
		return err
	}
	if c.r.Style, err = c.own("style", "vivid", "natural"); err != nil {
		return err
	}
	if c.r.Fidelity, err = c.own("input_fidelity", "low", "high"); err != nil {
		return err
	}
	c.r.User, err = c.in.text("user")
	return err
}

// refused checks the rules about edits, which come last in the documents.
func (c *checker) refused() error {
	if c.r.Operation == picture.Generate && c.r.Fidelity != "" {
		return unknown("input_fidelity")
	}
	if c.r.Operation == picture.Edit && !c.family.edits {
		return dialogue.Invalid("model", "cannot edit pictures")
	}
	return nil
}

// own reads a word of a parameter that not every family has.
func (c *checker) own(name string, words ...string) (string, error) {
	if err := c.unknown(name); err != nil {
		return "", err
	}
	return c.word(name, words...)
}

// word returns a parameter from a closed list, or "" if it is not given.
func (c *checker) word(name string, words ...string) (string, error) {
	w, err := c.in.text(name)
	if err != nil || !c.in.given(name) {
		return "", err
	}
	if !slices.Contains(words, w) {
		return "", dialogue.Invalid(name, "must be one of "+strings.Join(words, ", ")+" for this model")
	}
	return w, nil
}

// unknown returns the vendor's error for a parameter that the model's family does not have.
func (c *checker) unknown(name string) error {
	if c.in.given(name) && slices.Contains(c.family.refuses, name) {
		return unknown(name)
	}
	return nil
}

// unknown returns the vendor's error for a parameter that the model does not have.
func unknown(name string) *dialogue.Error {
	return dialogue.BadField(name, "unknown_parameter", "is not a parameter of this model")
}
