package videos

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/video"
	"stagedoor/providers/video/mp4"
	"stagedoor/state"
)

// Ask holds a client's request after its checks.
type Ask struct {
	Operation video.Operation
	Prompt    string
	// Model, Seconds, Size, Reference and Characters are a new video's; Seconds is
	// also how much longer an extension makes its source.
	Model      string
	Seconds    int
	Size       video.Size
	Reference  *picture.File // nil: none; to be closed
	Characters []string
	User       string
	// Source is the id of the job that an edit, extension or remix begins with. If it begins with an uploaded video,
	// that is Upload, Model is as for a new video, and Size is the upload's.
	Source string
	// SourceField names the field that had Source: video_id of the path, or video.id of the body.
	SourceField string
	Upload      *mp4.File // nil: none; to be closed
}

// Close releases the memory or the files of the picture and the video.
func (a *Ask) Close() error { return errors.Join(a.Reference.Close(), a.Upload.Close()) }

// Limits of a request for a video, which are those of the vendor.
const (
	MaxPrompt     = 32000 // characters
	MaxReference  = 20 << 20
	MaxUpload     = 100 << 20
	maxCharacters = 2
	maxID         = 128
	defaultModel  = "video-2"
)

// File is a picture under the name of its field.
type File struct {
	Field string
	*picture.File
}

// Upload is a video under the name of its field.
type Upload struct {
	Field string
	*mp4.File
}

// FileLimit returns the largest size in bytes of a picture in a form's field, or 0 if the field takes none.
func FileLimit(field string) int64 {
	if field == referenceField {
		return MaxReference
	}
	return 0
}

// UploadLimit returns the largest size in bytes of a video in a form's field, or 0 if the field takes none.
func UploadLimit(field string) int64 {
	if field == videoField {
		return MaxUpload
	}
	return 0
}

const (
	referenceField = "input_reference"
	videoField     = "video"
)

// Sent is a request: one JSON object, and the files of a form.
type Sent struct {
	Body     []byte
	Pictures []File
	Videos   []Upload
}

// Check reads a request. Its files are the Ask's if there is no error. source is
// the id that the path names, "" where the body does.
func Check(op video.Operation, sent Sent, source string) (*Ask, error) {
	c := &checker{ask: &Ask{Operation: op, Source: source, SourceField: "video_id"},
		doc: gjson.ParseBytes(sent.Body), files: sent.Pictures, uploads: sent.Videos}
	for _, rule := range rules[op] {
		if err := rule(c); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c.ask, nil
}

// rules lists the checks of each operation. Their order is that of the vendor, so that a request with
// several mistakes gets the same error.
var rules = map[video.Operation][]func(*checker) error{
	video.Create: {(*checker).prompt, (*checker).model, (*checker).seconds, (*checker).size, (*checker).reference,
		(*checker).characters, (*checker).user, (*checker).noUploads},
	video.Remix: {(*checker).prompt, (*checker).noPictures, (*checker).noUploads},
	video.Edit:  {(*checker).source, (*checker).prompt, (*checker).noPictures},
	video.Extend: {(*checker).source, (*checker).prompt, (*checker).added, (*checker).fits, (*checker).noPictures,
		(*checker).nothingElse},
}

// checker checks the members of a body and fills in the Ask. The rules run one after the other and may use
// what earlier ones have put into ask: size needs the model, and reference the size.
type checker struct {
	ask     *Ask
	doc     gjson.Result
	files   []File
	uploads []Upload
	made    *picture.File // of a data URL
}

// close releases the picture that the checker made of a data URL. The caller closes the other files.
func (c *checker) close() error { return c.made.Close() }

// member returns a member of the body. ok is false if it is absent or null.
func (c *checker) member(path string) (v gjson.Result, ok bool) {
	v = c.doc.Get(path)
	return v, v.Exists() && v.Type != gjson.Null
}

// text returns a string and whether it is there.
func (c *checker) text(name string) (s string, ok bool, err error) {
	v, ok := c.member(name)
	if ok && v.Type != gjson.String {
		return "", false, dialogue.Invalid(name, "must be a string")
	}
	return v.Str, ok, nil
}

// prompt checks the prompt. Its length is counted in characters, as the vendor does.
func (c *checker) prompt() error {
	s, ok, err := c.text("prompt")
	switch {
	case err != nil:
		return err
	case !ok:
		return dialogue.Missing("prompt")
	case s == "" || utf8.RuneCountInString(s) > MaxPrompt:
		return dialogue.Invalid("prompt", fmt.Sprintf("must have between 1 and %d characters", MaxPrompt))
	}
	c.ask.Prompt = s
	return nil
}

// model checks the model, or sets the vendor's default.
func (c *checker) model() error {
	s, ok, err := c.text("model")
	switch {
	case err != nil:
		return err
	case !ok:
		s = defaultModel
	case s == "":
		return dialogue.Invalid("model", "must not be empty")
	}
	if bad := dialogue.CheckModel("model", s); bad != nil {
		return bad
	}
	c.ask.Model = s
	return nil
}

// lengths lists the values of seconds (the last two by the vendor's guide).
var lengths = []int{4, 8, 12, 16, 20}

const lengthRule = `must be one of "4", "8", "12", "16" and "20"`

// seconds checks the length of a new video and puts it into ask. It may be a number or a text, because some clients
// send a number.
func (c *checker) seconds() error {
	v, ok := c.member("seconds")
	if !ok {
		c.ask.Seconds = lengths[0]
		return nil
	}
	text := v.Str
	if v.Type == gjson.Number {
		text = v.Raw
	}
	n, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(n) != text || !slices.Contains(lengths, n) {
		return dialogue.Invalid("seconds", lengthRule)
	}
	c.ask.Seconds = n
	return nil
}

// added checks the length of an extension, which must be given, and puts it into ask.
func (c *checker) added() error {
	if _, ok := c.member("seconds"); !ok {
		return dialogue.Missing("seconds")
	}
	return c.seconds()
}

// sizes lists the values of size; those of the larger model stand last.
var sizes = []video.Size{{Width: 720, Height: 1280}, {Width: 1280, Height: 720}, {Width: 1024, Height: 1792},
	{Width: 1792, Height: 1024},
	{Width: 1920, Height: 1080}, {Width: 1080, Height: 1920}}

const commonSizes = 4

// size checks the size against those of the model. The first one is the default.
func (c *checker) size() error {
	s, ok, err := c.text("size")
	if err != nil {
		return err
	}
	known := sizesOf(c.ask.Model)
	if !ok {
		c.ask.Size = known[0]
		return nil
	}
	for _, size := range known {
		if s == size.String() {
			c.ask.Size = size
			return nil
		}
	}
	return dialogue.Invalid("size", "must be one of "+list(known))
}

// sizesOf returns the sizes that a model can make.
func sizesOf(model string) []video.Size {
	if strings.Contains(model, "-pro") {
		return sizes
	}
	return sizes[:commonSizes]
}

// list returns sizes for an error.
func list(sizes []video.Size) string {
	words := make([]string, len(sizes))
	for i, size := range sizes {
		words[i] = size.String()
	}
	return strings.Join(words, ", ")
}

// reference checks the picture that the video begins with and puts it into ask. It is a file of a form or an object.
// The vendor wants it to have exactly the size of the video.
func (c *checker) reference() error {
	v, given := c.member(referenceField)
	switch {
	case len(c.files) > 1, len(c.files) == 1 && given:
		return dialogue.Invalid(referenceField, "must be given once")
	case len(c.files) == 1:
		c.ask.Reference = c.files[0].File
	case given:
		if err := c.encoded(v); err != nil {
			return err
		}
	default:
		return nil
	}
	if got := c.ask.Reference.Dimensions(); got.Width != c.ask.Size.Width || got.Height != c.ask.Size.Height {
		return dialogue.Invalid(referenceField, fmt.Sprintf("must have the size of the video, %s, not %s", c.ask.Size,
			got))
	}
	return nil
}

// encoded reads {image_url}. A file_id is refused, since the gateway has no files, and an address is not
// fetched, since clients could make the gateway call anything.
func (c *checker) encoded(v gjson.Result) error {
	url, file := v.Get("image_url"), v.Get("file_id")
	hasURL, hasFile := url.Exists() && url.Type != gjson.Null, file.Exists() && file.Type != gjson.Null
	const at = referenceField + ".image_url"
	switch {
	case !v.IsObject():
		return dialogue.Invalid(referenceField, "must be a file or an object with image_url")
	case hasURL == hasFile:
		return dialogue.Invalid(referenceField, "must have exactly one of image_url and file_id")
	case hasFile:
		return dialogue.Unsupported(referenceField+".file_id",
			"files are not kept here: send the picture itself, or in image_url as a data URL")
	case url.Type != gjson.String:
		return dialogue.Invalid(at, "must be a string")
	}
	data, ok := dataURL(url.Str)
	if !ok {
		return dialogue.Invalid(at, "must be a data URL in base64: addresses are not fetched")
	}
	f, err := picture.ReadFile("", base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)), MaxReference, "")
	switch {
	case errors.Is(err, picture.ErrTooLarge):
		return dialogue.FileTooLarge(at, MaxReference)
	case err != nil:
		return dialogue.Invalid(at, "must be a whole PNG, JPEG or WebP picture")
	}
	c.made, c.ask.Reference = f, f
	return nil
}

// dataURL returns the base64 data of a data URL.
func dataURL(s string) (encoded string, ok bool) {
	const longest = 128
	comma := strings.IndexByte(s[:min(len(s), longest)], ',')
	if comma < 0 {
		return "", false
	}
	head := strings.ToLower(s[:comma])
	return s[comma+1:], strings.HasPrefix(head, "data:") && strings.HasSuffix(head, ";base64")
}

// characters checks the references to characters of earlier videos.
func (c *checker) characters() error {
	v, ok := c.member("characters")
	if !ok {
		return nil
	}
	if !v.IsArray() || v.Get("#").Int() > maxCharacters {
		return dialogue.Invalid("characters", fmt.Sprintf("must be an array of at most %d objects with an id",
			maxCharacters))
	}
	for i, one := range v.Array() {
		id := one.Get("id")
		if id.Type != gjson.String || id.Str == "" || len(id.Str) > maxID {
			return dialogue.Invalid(fmt.Sprintf("characters.%d.id", i),
				fmt.Sprintf("must be a string of at most %d characters", maxID))
		}
		c.ask.Characters = append(c.ask.Characters, id.Str)
	}
	return nil
}

// user reads the client's own name for its user.
func (c *checker) user() error {
	s, _, err := c.text("user")
	c.ask.User = s
	return err
}

// Fingerprint returns a hash that is the same for two requests that ask for the same. A repeat under the same
// idempotency key must have the same fingerprint. Files count by the hash of their content. The error is that of
// reading a file.
func (a *Ask) Fingerprint() (state.Hash, error) {
	sum := sha256.New()
	var file io.Reader = strings.NewReader("")
	switch { // no operation takes both
	case a.Reference != nil:
		file = a.Reference.Reader()
	case a.Upload != nil:
		file = a.Upload.Reader()
	}
	if _, err := io.Copy(sum, file); err != nil {
		return state.Hash{}, err
	}
	text, err := json.Marshal([]any{a.Operation, a.Prompt, a.Model, a.Seconds, a.Size, a.Characters, a.User, a.Source,
		sum.Sum(nil)})
	return state.HashSecret(string(text)), err
}
