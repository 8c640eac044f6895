package shapes

import (
	"net/http"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// Descriptor holds the facts about a shape that other parts of the gateway need. It is the only
// place for them: routes, scopes, error replies, the doctor, telemetry, the catalogue and the
// simulator read it. A Descriptor is immutable.
type Descriptor struct {
	// Name is the shape's name in the configuration, in logs and in spans. The configuration and
	// providers/catalog accept it as the shape of a provider.
	Name dialogue.Shape
	// Scope names the permission that an API key needs for the Routes. The gateway does not start
	// with routes that have no scope (see Check). http/text checks it, and registry.Scopes offers it
	// to keys, groups and the configuration.
	Scope string
	// KeyHeader is the header, in canonical form, in which the vendor's clients send an API key if
	// they do not send it as a bearer token. http/auth accepts it from clients of all shapes.
	KeyHeader string
	// Routes lists where clients of the shape send requests. http/server adds them.
	Routes []Route
	// Read reads what a request says in its path and query. If Read is nil, a request says
	// everything in its body and its route has the Task. http/text and the simulator call it.
	Read func(r *http.Request) (Params, Task)
	// ErrorPaths lists prefixes of paths. An error on such a path that no route answers (404,
	// 405, a request that is too large) has the shape's envelope. http/server looks them up.
	ErrorPaths []string
	// Members are the member names that the shape reads in requests. A request with a name that
	// only folds to one of them is refused by http/text.
	Members *fields.Names
	// Signs are members at the top of requests in the shape that requests in other shapes have not, or only by chance.
	// A request that came without the name of its shape is taken for the shape of which it has the most
	// (POST /v1/translate).
	Signs []string
	// Answer names the members that carry a piece of an answer. A request whose upstream reports
	// no usage is estimated by them, in actors/text.
	Answer AnswerMembers
	// Proofs are the names of the members by which the vendor vouches for its model's reasoning. An
	// upstream may refuse those of another provider. actors/text notes which provider made them.
	Proofs []string
	// Telemetry names the shape and its calls in the spans and metrics of actors/telemetry.
	Telemetry Telemetry
	// Defaults are the capabilities of a model of unknown family at an upstream of the shape.
	// providers/catalog starts from them.
	Defaults dialogue.Capabilities
	// Models is the form in which the shape lists models for its clients. If it is nil, they get the
	// list of GET /v1/models. http/text and the simulator write it.
	Models *ModelList
	// Probe is the request with which the doctor checks that an upstream of the shape can be reached and accepts a
	// key, and with which providers/modellist reads its models.
	Probe Probe
	// SandboxPath is the pattern of the path, without a version, at which the simulator takes
	// requests in the shape: "/chat/completions".
	SandboxPath string
	// Traits say how the shape uses the notions that shapes have in common. Encoders of other shapes
	// and the handlers of http/text read them.
	Traits dialogue.Traits
}

// Task is the kind of answer that a request asks for. It decides which handler of http serves the
// route.
type Task uint8

// Tasks of a route.
const (
	NoTask   Task = iota // the path leads nowhere
	Generate             // a reply
	Count                // the number of tokens of a request
	Embed                // vectors of texts, which http/embeddings serves
)

// Route is a path on which clients of a shape send requests.
type Route struct {
	Pattern string // as net/http takes it: "POST /v1/messages"
	Task    Task
	// Word is set if the last element of the path would otherwise be the {id} of another route.
	Word bool
}

// Telemetry names what calls in a shape do, in the words of OpenTelemetry's conventions.
type Telemetry struct {
	Operation string // "chat", "text_completion", "generate_content"
	// Vendor is the vendor whose shape it is. A provider may be someone else.
	Vendor string
	// ReplyID and ReplyModel are the paths, in gjson's syntax, where a reply or its first event
	// gives its id and its model.
	ReplyID, ReplyModel []string
	// ReplyTier are the paths where a reply or an event gives its service tier, as a member service_tier.
	ReplyTier []string
}

// Probe is a request that costs nothing and needs a key.
type Probe struct {
	// Path lists an upstream's models. It is "" if an upstream can only be reached, not asked.
	Path string
	// Pages is the query that asks for the longest page of the list, and After the parameter that asks for the page
	// after one. After is "" if the list has one page.
	Pages, After string
	Header       http.Header
	Authorize    func(h http.Header, key string)
}

// Model is an entry of a list of models.
type Model struct {
	ID string
	// Owner is the name of the provider that serves the model. Shapes with an owned_by member write
	// it.
	Owner string
}

// ModelTime is the creation time that models without one of their own report. Clients sort by it,
// so it must not change between requests.
var ModelTime = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// ModelList is the form in which clients of a shape get lists of models.
type ModelList struct {
	// Path is the path of the list, if it is the shape's own. Below it are the models.
	Path string
	// Header is a request header that only clients of the shape send. Such clients get this form
	// on GET /v1/models, too.
	Header string
	Paging Paging
	// Methods lists what a client can append to the path of a model after a colon. A GET of such
	// a path is refused with 405.
	Methods []string
	// Page writes a page of a list. more is set if another page follows.
	Page func(models []Model, more bool) []byte
	// One writes the description of one model.
	One func(Model) []byte
}

// Paging names the query parameters that ask for a page of a list.
type Paging struct {
	// Size is the parameter with the number of entries on a page: "limit", "pageSize".
	Size    string
	Default int // size of a page if none is given
	// After and Before are the parameters with the id of the entry that a page follows or precedes.
	// Before is "" for a shape whose lists can only be read forwards.
	After, Before string
	// Coerce is set if a size that is too large counts as the largest.
	Coerce bool
}
