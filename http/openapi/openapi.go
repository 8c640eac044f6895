// Package openapi describes the public API as an OpenAPI 3.1 document, which the gateway serves at /openapi.json.
//
// The description has one source for each thing: the router has the routes, docs/routes.md says what each does,
// docs/errors.md which error codes there are, bodies.txt the types of bodies, and the table of operations connects
// them. Tests drive requests and replies of the running program through the description. The administration API
// describes itself in package adminapi, and pages for people are not described.
//
// Concurrency: a handler of Handler is safe for concurrent use.
//
// # Usage
//
// The server passes the patterns of its router to Handler. To describe a new route, write its row
// in docs/routes.md, its operation in operations.go and the types of its bodies in bodies.txt.
//
// # Errors
//
// A mistake in the tables, such as an operation that docs/routes.md does not have, panics when the
// document is made, because it is a mistake of the program. The tests of this package make the
// document.
package openapi

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"stagedoor/docs"
	"stagedoor/providers/byterange"
)

// Path is the path of the description.
const Path = "/openapi.json"

// version is that of the documents (gateway.md 9).
const version = "2.1.1"

const about = "One key works on all routes of models. Members that are not described are forwarded where client and " +
	"upstream speak the same shape, and dropped otherwise. `null` stands for a member that is not given. Base " +
	"addresses with and without `/v1` work. The administration API is described at `/admin/v1/openapi.json`."

//go:embed bodies.txt
var bodies string

// Handler returns the handler of the description of the routes that served returns, which are patterns of net/http's
// ServeMux. It calls served and makes the description at the first request, when the router is complete. Clients can
// keep the description for 5 minutes and then ask whether it changed.
func Handler(served func() []string) http.HandlerFunc {
	document := sync.OnceValues(func() ([]byte, string) {
		b := Document(served())
		sum := sha256.Sum256(b)
		return b, `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	})
	return func(w http.ResponseWriter, r *http.Request) {
		b, tag := document()
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Cache-Control", "public, max-age=300")
		h.Set("ETag", tag)
		h.Set("Access-Control-Allow-Origin", "*") // tools in browsers read it, and it has no secrets
		byterange.Correct(r.Header)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	}
}

// Document returns the description of the operations whose routes are in served. A mistake in the tables of this
// package panics, which its tests would show.
func Document(served []string) []byte {
	d := document{summaries: summaries(docs.Routes), codes: Codes(), responses: object{}}
	paths := map[string]object{}
	for i := range operations {
		o := &operations[i]
		// A route that this gateway does not serve, because a part is switched off, is not described either.
		if !slices.ContainsFunc(served, o.servedBy) {
			continue
		}
		method, path, _ := strings.Cut(o.route, " ")
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path][strings.ToLower(method)] = d.operation(o, path)
	}
	params := object{}
	for _, line := range parameters {
		name, p := parameter(line)
		params[name] = p
	}
	b, err := json.Marshal(object{
		"openapi":  "3.1.0",
		"info":     object{"title": "Stagedoor", "version": version, "description": about},
		"servers":  []object{{"url": "/"}},
		"security": anyOf(keySchemes),
		"paths":    paths,
		"components": object{
			"schemas": types(bodies), "parameters": params, "responses": d.responses, "headers": headers(),
			"securitySchemes": securitySchemes,
		},
		"x-error-codes": d.codes,
	})
	if err != nil {
		panic(err) // the document has only maps, lists and strings
	}
	return b
}

// servedBy reports whether a pattern of net/http's ServeMux serves the operation. A pattern that ends in {rest...}
// serves several: names of models may contain slashes, and an action follows them after a colon.
func (o *operation) servedBy(pattern string) bool {
	prefix, several := strings.CutSuffix(pattern, "{rest...}")
	return pattern == o.route || several && strings.HasPrefix(o.route, prefix)
}

type document struct {
	summaries map[string]summary
	codes     []Code
	responses object
}

// operation returns the description of one operation. It panics for a route that docs/routes.md does not have, which
// a test runs into before a release does.
func (d *document) operation(o *operation, path string) object {
	s, ok := d.summaries[o.route]
	if !ok {
		panic("docs/routes.md does not have " + o.route)
	}
	op := object{"operationId": o.id, "summary": s.text, "tags": []string{s.section}}
	var params []object
	for _, m := range placeholder.FindAllStringSubmatch(path, -1) {
		params = append(params,
			object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, name := range strings.Fields(o.params) {
		params = append(params, reference("parameters", name))
	}
	if params != nil {
		op["parameters"] = params
	}
	if o.auth != nil {
		op["security"] = anyOf(o.auth)
	}
	bodies, socket := contents(o.in)
	if socket == nil && len(bodies) > 0 {
		op["requestBody"] = object{"required": !o.optional, "content": bodies}
	}
	replies, events := contents(o.out)
	reply := object{"description": "The reply", "headers": object{}}
	if len(replies) > 0 {
		reply["content"] = replies
	}
	// Every reply may have these headers, whatever its route.
	for _, name := range replyHeaders {
		reply["headers"].(object)[name] = reference("headers", name)
	}
	status := "200"
	if socket != nil {
		status = "101"
		reply["description"] = "A WebSocket, whose messages are JSON texts"
		op["x-websocket"] = object{"client": socket, "server": events}
	}
	responses := object{status: reply, "default": d.failure(o, "default")}
	// RFC 6749 gives the OAuth routes their statuses and codes, so the list of the gateway's codes would mislead
	// there.
	if o.dialect() != "OAuthError" {
		for _, code := range o.statuses() {
			responses[code] = d.failure(o, code)
		}
	}
	maps.Copy(responses, o.replies)
	op["responses"] = responses
	return op
}

// contents returns the media types of a list of bodies such as "ChatCompletion events:ChatChunk", and the schema of the
// messages of a WebSocket.
func contents(list string) (media object, socket any) {
	media = object{}
	for _, item := range strings.Fields(list) {
		kind, name, ok := strings.Cut(item, ":")
		if !ok {
			kind, name = "json", item
		}
		switch kind {
		case "socket":
			socket = reference("schemas", name)
		case "events":
			text := object{"type": "string", "description": "The data of each event is of the type " + name + "."}
			media["text/event-stream"] = object{"schema": text, "x-event-data": reference("schemas", name)}
		case "form":
			media["multipart/form-data"] = object{"schema": reference("schemas", name)}
		case "urlencoded":
			media["application/x-www-form-urlencoded"] = object{"schema": reference("schemas", name)}
		case "bytes":
			media[name] = object{}
		default:
			media["application/json"] = object{"schema": reference("schemas", name)}
		}
	}
	return media, socket
}

// dialect names the type of an operation's errors.
func (o *operation) dialect() string {
	_, path, _ := strings.Cut(o.route, " ")
	for _, d := range [...][2]string{{"/v1/messages", "MessagesError"}, {"/v1beta/", "GeminiError"},
		{"/api/oauth_apps", "AppError"}, {"/api/", "OAuthError"}} {
		if strings.HasPrefix(path, d[0]) {
			return d[1]
		}
	}
	return "Error"
}

// statuses returns the error statuses of an operation. Operations with a body have those of bodies and upstreams, too.
func (o *operation) statuses() []string {
	all := append([]string{"400", "401", "403", "404", "405", "429", "431", "500", "503"}, o.errors...)
	if o.in != "" {
		// A body can arrive too slowly, be too large or of another type, and its request can fail at an upstream.
		all = append(all, "408", "409", "413", "415", "502", "504")
	}
	return all
}

// failure returns a reference to the response for a status in the operation's dialect, and adds it to the document.
func (d *document) failure(o *operation, status string) object {
	name := o.dialect() + "-" + status
	if d.responses[name] == nil {
		text := "An error"
		var codes []string
		for _, c := range d.codes {
			if strings.Contains(c.Status, status) && c.Code != "" {
				codes = append(codes, "`"+c.Code+"`")
			}
		}
		if codes != nil {
			text = "One of the codes " + strings.Join(codes, ", ") + ", or an upstream's own"
		}
		fields := object{}
		for _, header := range failureHeaders {
			fields[header] = reference("headers", header)
		}
		d.responses[name] = object{"description": text, "headers": fields,
			"content": object{"application/json": object{"schema": reference("schemas", o.dialect())}}}
	}
	return reference("responses", name)
}

// Code is an error code of the gateway.
type Code struct {
	Code string `json:"code"`
	// Status is "400", "400 or 422", or "in the job", "in logs" and the like if the code is not sent as a reply.
	Status string `json:"status"`
	// Retry reports whether the same request may succeed later.
	Retry   bool   `json:"retry"`
	Meaning string `json:"meaning"`
}

// Codes returns the error codes in docs/errors.md, in the order of the page.
func Codes() []Code {
	var all []Code
	for line := range strings.Lines(docs.Errors) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 4 || cells[2] != "yes" && cells[2] != "no" {
			continue
		}
		for _, m := range codeSpan.FindAllStringSubmatch(cells[0], -1) {
			all = append(all, Code{m[1], cells[1], cells[2] == "yes", plain(strings.TrimSuffix(cells[3], " |"))})
		}
	}
	return all
}

// summary is the sentence of docs/routes.md about a route, and its section.
type summary struct{ section, text string }

var (
	placeholder = regexp.MustCompile(`\{(\w+)\}`)
	codeSpan    = regexp.MustCompile("`([^`]+)`")
	link        = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// summaries returns the sentences of the tables in docs/routes.md by route.
func summaries(page string) map[string]summary {
	all, section := map[string]summary{}, ""
	for line := range strings.Lines(page) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = strings.TrimSpace(title)
		}
		if cells := strings.Split(strings.TrimSpace(line), " | "); len(cells) == 2 {
			text := plain(strings.TrimSuffix(cells[1], " |"))
			for _, m := range codeSpan.FindAllStringSubmatch(cells[0], -1) {
				all[m[1]] = summary{section, text}
			}
		}
	}
	return all
}

// plain returns a text without its links. "(page)" is a link that stands alone.
func plain(text string) string {
	return strings.ReplaceAll(link.ReplaceAllString(text, "$1"), " (page)", "")
}

// object is a JSON object of the document.
type object = map[string]any

func reference(kind, name string) object { return object{"$ref": "#/components/" + kind + "/" + name} }

// anyOf returns the ways of authentication, of which a request needs one.
func anyOf(schemes []string) []object {
	all := []object{}
	for _, s := range schemes {
		all = append(all, object{s: []string{}})
	}
	return all
}

// parameter returns the component that a line of parameters describes, and the component's name. The line is
// "[component] place name type # description", such as "items_limit query limit integer 1..100 # the length". Without a
// component, the parameter's own name is the component's.
func parameter(line string) (string, object) {
	words := strings.SplitN(line, " ", 3)
	key, in := "", words[0]
	if in != "query" && in != "header" {
		words = strings.SplitN(line, " ", 4)
		key, in = words[0], words[1]
	}
	name := words[len(words)-2]
	kind, doc, _ := strings.Cut(words[len(words)-1], " # ")
	key = cmp.Or(key, name)
	return key, object{"name": name, "in": in, "description": doc, "schema": typeOf(kind)}
}

// headers returns the headers of replies that clients can use.
func headers() object {
	all := object{}
	for _, list := range [][2]string{
		{"X-Request-Id", "The id of the request, also in the gateway's log"},
		{"X-Stagedoor-Losses", "What the translation dropped, changed or added, as short names"},
		{"X-Structured-Output-Degraded", "Why the reply is not constrained to the schema"},
		{"Retry-After", "Seconds to wait before the request is repeated"},
		{"X-Should-Retry", "Whether an SDK should repeat the request; without it, the status says so"},
	} {
		all[list[0]] = object{"description": list[1], "schema": object{"type": "string"}}
	}
	return all
}

var (
	replyHeaders   = []string{"X-Request-Id", "X-Stagedoor-Losses", "X-Structured-Output-Degraded"}
	failureHeaders = []string{"X-Request-Id", "Retry-After", "X-Should-Retry"}
)
