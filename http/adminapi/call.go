package adminapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

const (
	maxBody   = 1 << 20
	pageSize  = 50
	pageLimit = 500
)

// requestContext is one request to the API with its parsed query and its body. body is nil for a route
// without one. Handlers do not read it: decode does, for the type that the route declares.
type requestContext struct {
	*API
	r     *http.Request
	query url.Values
	body  []byte
}

// read reads the query and, if the route has one, the body. It refuses unknown parameters, because
// a mistyped filter must not return everything.
func (c *requestContext) read(rt *route, w http.ResponseWriter) error {
	query, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return dialogue.Invalid("query", "must be percent-encoded parameters")
	}
	c.query = query
	for name, values := range query {
		at := slices.IndexFunc(rt.query, func(p param) bool { return p.name == name })
		if at < 0 {
			return dialogue.BadRequest("unknown_parameter",
				fmt.Sprintf("%q: is not a parameter of this route%s", truncate(name), allowedParams(rt))).About(name)
		}
		if len(values) > 1 {
			return dialogue.Invalid(name, "must be given once")
		}
		if enum := rt.query[at].enum; enum != nil && !slices.Contains(enum, values[0]) {
			return dialogue.Invalid(name, "must be one of "+strings.Join(enum, ", "))
		}
	}
	if rt.in == nil {
		return nil
	}
	if c.r.ContentLength > maxBody {
		return bodyTooLong()
	}
	if h := c.r.Header.Get("Content-Type"); h != "" {
		if media, _, err := mime.ParseMediaType(h); err != nil || media != "application/json" {
			return dialogue.UnsupportedMedia("the body must be application/json")
		}
	}
	c.body, err = io.ReadAll(http.MaxBytesReader(w, c.r.Body, maxBody))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return bodyTooLong()
	case err != nil:
		return dialogue.InvalidBody(err)
	}
	return nil
}

// bodyTooLong returns the error for a body above maxBody.
func bodyTooLong() *dialogue.Error {
	return dialogue.Refusal(http.StatusRequestEntityTooLarge, "request_too_large",
		fmt.Sprintf("the body is longer than %d bytes", maxBody))
}

// allowedParams lists the query parameters of a route for an error message.
func allowedParams(rt *route) string {
	var names []string
	for _, p := range rt.query {
		names = append(names, p.name)
	}
	if names == nil {
		return ", which takes none"
	}
	return ", which takes " + strings.Join(names, ", ")
}

// decode returns the body as a T. Unknown members, repeated members and, in a PATCH, null for
// members that cannot be null are errors. An empty body is read as {}.
func decode[T any](c *requestContext) (T, error) {
	var in T
	body := c.body
	if len(body) == 0 {
		// Several calls have only optional members, and a client of curl sends no body for them.
		body = []byte("{}")
	}
	// The decoder would report a document that is nested too deeply in words that no client can act on.
	if fault := fields.Explain(body); fault.Flaw.OverLimit() {
		return in, dialogue.BadRequest("invalid_json", "the body "+fault.Rule())
	}
	if err := json.Unmarshal(body, &in, json.RejectUnknownMembers(true)); err != nil {
		return in, decodeError(err)
	}
	if c.r.Method == http.MethodPatch {
		return in, refuseNulls(body, reflect.TypeFor[T](), "")
	}
	return in, nil
}

// refuseNulls returns an error that names the first member of an update that is null although its field has no
// use for null. The decoder reads such a member as absent, so the update would say that it succeeded and change
// nothing.
// It walks the type and not the body, so its work is bounded by the API and not by the client.
func refuseNulls(body []byte, t reflect.Type, prefix string) error {
	if o, ok := reflect.Zero(t).Interface().(interface{ element() any }); ok {
		t = reflect.TypeOf(o.element())
	}
	var members map[string]jsontext.Value
	if t.Kind() != reflect.Struct || json.Unmarshal(body, &members) != nil {
		return nil // not an object of known members
	}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		value, given := members[name]
		switch {
		case !given:
		case f.Type.Kind() == reflect.Pointer && value.Kind() == 'n':
			return dialogue.Invalid(prefix+name, "must not be null")
		default:
			if err := refuseNulls(value, f.Type, prefix+name+"."); err != nil {
				return err
			}
		}
	}
	return nil
}

// decodeError returns an error that names the member of the body that could not be decoded. The decoder's own
// text is never sent, because it names types of this program. The first mistake is reported. A member with
// the wrong type names the expected one in the words of JSON.
func decodeError(err error) *dialogue.Error {
	var wrong *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &wrong) && wrong.JSONPointer != "":
		param := fieldPath(wrong.JSONPointer)
		if errors.Is(err, json.ErrUnknownName) {
			return dialogue.BadField(param, "unknown_field", "is not a known field")
		}
		return dialogue.Invalid(param, "has the wrong type"+expectedType(wrong))
	case errors.As(err, &syntax) && errors.Is(err, jsontext.ErrDuplicateName):
		return dialogue.RepeatedName(fieldPath(syntax.JSONPointer))
	}
	return dialogue.BadRequest("invalid_json", "the body must be a JSON object")
}

// expectedType returns the end of an error message, which says which JSON type the member should have had. It returns
// "" if the type has no word.
func expectedType(e *json.SemanticError) string {
	if e.GoType == nil {
		return ""
	}
	t := e.GoType
	for t.Kind().String() == "ptr" {
		t = t.Elem()
	}
	words := map[string]string{"string": "a string", "bool": "true or false", "int": "a whole number",
		"int64": "a whole number",
		"slice": "a list", "struct": "an object"}
	if t.String() == "time.Time" {
		return ", expected a time like 2026-01-02T15:04:05Z"
	}
	if w := words[t.Kind().String()]; w != "" {
		return ", expected " + w
	}
	return ""
}

// fieldPath returns a JSON pointer in the notation of the error envelope: a.b[0].
func fieldPath(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		if _, err := strconv.Atoi(token); err == nil && b.Len() > 0 {
			fmt.Fprintf(&b, "[%s]", token)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(truncate(token))
	}
	return b.String()
}

// truncate returns the first 64 bytes of s, for error messages that quote outside text.
func truncate(s string) string {
	const most = 64
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}

// limit returns the page size that the query asks for.
func (c *requestContext) limit() (int, error) {
	if !c.query.Has("limit") {
		return pageSize, nil
	}
	n, err := strconv.Atoi(c.query.Get("limit"))
	if err != nil || n < 1 || n > pageLimit {
		return 0, dialogue.Invalid("limit", fmt.Sprintf("must be between 1 and %d", pageLimit))
	}
	return n, nil
}

// number returns a positive whole number of the query, or 0 if the parameter is absent.
func (c *requestContext) number(name string) (int64, error) {
	if !c.query.Has(name) {
		return 0, nil
	}
	n, err := strconv.ParseInt(c.query.Get(name), 10, 64)
	if err != nil || n < 1 {
		return 0, dialogue.Invalid(name, "must be a whole number above 0")
	}
	return n, nil
}

// id returns the numeric id in the path. Anything else than a number is a 404, because no such thing can
// exist.
func (c *requestContext) id() (int64, error) {
	n, err := strconv.ParseInt(c.r.PathValue("id"), 10, 64)
	if err != nil || n < 1 {
		return 0, notFound("id", "ids are whole numbers above 0")
	}
	return n, nil
}

// withID returns a handler that calls serve with the numeric id in the path.
func withID(serve func(*requestContext, int64) (any, error)) func(*requestContext) (any, error) {
	return func(c *requestContext) (any, error) {
		id, err := c.id()
		if err != nil {
			return nil, err
		}
		return serve(c, id)
	}
}

// withBody returns a handler that calls serve with the decoded body.
func withBody[T any](serve func(*requestContext, T) (any, error)) func(*requestContext) (any, error) {
	return func(c *requestContext) (any, error) {
		in, err := decode[T](c)
		if err != nil {
			return nil, err
		}
		return serve(c, in)
	}
}

// withIDAndBody returns a handler that calls serve with the numeric id in the path and the decoded body. An id that is
// no number is reported before a mistake of the body.
func withIDAndBody[T any](serve func(*requestContext, int64, T) (any, error)) func(*requestContext) (any, error) {
	return withID(func(c *requestContext, id int64) (any, error) {
		return withBody(func(c *requestContext, in T) (any, error) { return serve(c, id, in) })(c)
	})
}

// time returns a day or time of the query, and false if the parameter is absent.
// A day is taken as its beginning in UTC, which is how the ledger divides days.
func (c *requestContext) time(name string) (time.Time, bool, error) {
	text := c.query.Get(name)
	if text == "" {
		return time.Time{}, false, nil
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t, true, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, false, dialogue.Invalid(name, "must be a day like 2026-01-02 or a time like "+
			"2026-01-02T15:04:05Z")
	}
	return t, true, nil
}

// pageOf returns the page of all that the query selects with limit and after. all must be in a
// stable order, and id must return a different text for each item.
// The cursor is the id of the last item and not a number of items, so that a page does not skip or
// repeat items when others are deleted meanwhile.
func pageOf[T any](c *requestContext, all []T, id func(*T) string) (List[T], error) {
	limit, err := c.limit()
	if err != nil {
		return List[T]{}, err
	}
	from := 0
	if after := c.query.Get("after"); after != "" {
		from = slices.IndexFunc(all, func(v T) bool { return id(&v) == after }) + 1
		if from == 0 {
			return List[T]{}, errNoPage()
		}
	}
	rest := all[from:]
	l := List[T]{Data: append([]T{}, rest[:min(limit, len(rest))]...)}
	if len(rest) > limit {
		l.Next = new(id(&l.Data[limit-1]))
	}
	return l, nil
}

// errNoPage returns the 400 for an after that is no value of next.
func errNoPage() error {
	return dialogue.Invalid("after", "must be the value of next in the previous page")
}

// convertAll returns convert of every item.
func convertAll[A, B any](items []A, convert func(*A) B) []B {
	converted := make([]B, len(items))
	for i := range items {
		converted[i] = convert(&items[i])
	}
	return converted
}

// timeOrNull returns nil for the zero time, which the API shows as null.
func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
