package server

import (
	"net/http"
	"slices"
	"strings"

	"stagedoor/http/accesslog"
	"stagedoor/http/dryrun"
	"stagedoor/http/envelope"
	"stagedoor/http/media"
	"stagedoor/http/openapi"
	"stagedoor/http/responsesocket"
	"stagedoor/http/text"
	"stagedoor/http/web/pages"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/registry"
)

// routes returns the handler of every path that the gateway serves.
func (s *Server) routes(d *text.Handlers) http.Handler {
	r := &router{
		mux:     http.NewServeMux(),
		methods: make(map[string][]string),
		words:   make(map[string][]string),
		dialect: s.dialect,
	}

	r.text(s.options.Shapes, d)
	r.route("POST /v1/translate", d.Translate)
	r.modelPaths = d.ModelRoutes(r.handle)
	r.tasks(registry.Media, d)
	r.responses(d)
	if o := s.options.Socket; o != nil {
		r.socket(func(w http.ResponseWriter, req *http.Request) { o.Serve(w, req, s.http.Handler) })
	}
	r.conversations(d)
	r.handle("GET /v1/receipts/{request_id}", d.Receipt)
	r.handle("GET /v1/requests/{id}/events", d.Attach.Events)

	if m := s.options.Media; m != nil {
		r.media(m)
	}
	if l := s.options.Live; l != nil {
		r.word("GET /v1/videos/events", l.AllEvents)
		r.word("GET /v1/videos/live", l.Jobs)
		r.handle("GET /v1/videos/{id}/events", l.JobEvents)
	}

	if o := s.options.OAuth; o != nil {
		o.Routes(r.handle)
		r.handle("GET "+pages.AssetPrefix+"{name}", func(w http.ResponseWriter, req *http.Request) {
			if !pages.Asset(w, req) {
				r.notFound(w, req)
			}
		})
	}
	if o := s.options.Portal; o != nil {
		o.Routes(r.handle)
		o.ForwardRoutes(r.handle, r.route, r.mux)
		r.missing = o.Missing
	}
	if a := s.options.Admin; a != nil {
		a.Routes(r.handle)
	}

	if m := s.options.Scrape; m != nil {
		r.handle("GET /metrics", m.ServeHTTP)
	}
	r.handle("GET /healthz", s.healthz)
	r.handle("GET /readyz", s.readyz)
	r.handle("GET "+openapi.Path, openapi.Handler(func() []string { return r.served }))

	s.router = r
	return aliased(s.options.Aliases, r.done())
}

// responses adds the routes of stored responses. Those that make one are in the descriptor of the shape.
func (r *router) responses(d *text.Handlers) {
	r.handle("GET /v1/responses/{id}", d.Response)
	r.handle("DELETE /v1/responses/{id}", d.DeleteResponse)
	r.handle("POST /v1/responses/{id}/cancel", d.CancelResponse)
	r.handle("GET /v1/responses/{id}/input_items", d.InputItems)
}

// socket adds the WebSocket of responses, which serve handles. A GET that asks for no WebSocket is refused with 405 as
// if the route did not exist. Therefore the route is added to the ServeMux alone, and Allow does not list GET.
func (r *router) socket(serve http.HandlerFunc) {
	serve = dryrun.Refuse(r.dialect, serve)
	r.mux.HandleFunc("GET /v1/responses", func(w http.ResponseWriter, req *http.Request) {
		if responsesocket.Wanted(req) {
			serve(w, req)
			return
		}
		r.notAllowed(w, req)
	})
	r.served = append(r.served, "GET /v1/responses")
}

// conversations adds the routes of stored conversations and their items.
func (r *router) conversations(d *text.Handlers) {
	r.handle("POST /v1/conversations", d.CreateConversation)
	r.handle("GET /v1/conversations/{id}", d.Conversation)
	r.handle("POST /v1/conversations/{id}", d.UpdateConversation)
	r.handle("DELETE /v1/conversations/{id}", d.DeleteConversation)
	r.handle("POST /v1/conversations/{id}/items", d.AddConversationItems)
	r.handle("GET /v1/conversations/{id}/items", d.ConversationItems)
	r.handle("GET /v1/conversations/{id}/items/{item_id}", d.ConversationItem)
	r.handle("DELETE /v1/conversations/{id}/items/{item_id}", d.DeleteConversationItem)
}

// media adds the routes of images and, if the gateway makes them, of videos.
func (r *router) media(m *media.Handlers) {
	r.route("POST /v1/images/generations", m.GenerateImages)
	r.route("POST /v1/images/edits", m.EditImages)
	r.handle("GET "+media.ContentPath+"{name}", m.Content.Serve)
	m.ImagegenRoutes(r.route)
	if m.Videos != nil {
		r.videos(m)
	}
}

// router is an http.ServeMux that writes 404 and 405 in the envelope of the path and never redirects
// to a cleaned path.
type router struct {
	mux     *http.ServeMux
	methods map[string][]string // by path
	words   map[string][]string // by path, for the paths of word
	served  []string            // all patterns, which the description of the API is made of
	dialect func(path string) envelope.Dialect
	// versions are the versions of the API that paths begin with.
	versions []string
	known    likenesses
	// modelPaths are the paths below which models are described. Another path there is taken for
	// the name of a model.
	modelPaths []string
	// missing, if not nil, may answer unknown paths with a page for people.
	missing func(http.ResponseWriter, *http.Request) bool
}

// handle adds a route that has no dry run.
func (r *router) handle(pattern string, h http.HandlerFunc) {
	r.route(pattern, r.withoutDryRun(pattern, h))
}

// withoutDryRun makes a handler refuse requests for a dry run, unless it changes nothing anyway.
func (r *router) withoutDryRun(pattern string, h http.HandlerFunc) http.HandlerFunc {
	if strings.HasPrefix(pattern, http.MethodGet+" ") {
		return h
	}
	return dryrun.Refuse(r.dialect, h)
}

// route adds a route whose handler knows dry runs.
func (r *router) route(pattern string, h http.HandlerFunc) {
	method, path, _ := strings.Cut(pattern, " ")
	r.mux.HandleFunc(pattern, h)
	r.methods[path] = append(r.methods[path], method)
	r.served = append(r.served, pattern)
}

// word adds a route, as handle does, whose last element is a fixed word where another route has {id}, such as
// /v1/videos/edits beside /v1/videos/{id}. Methods that only the route with {id} has are answered with 405 there,
// because the word is never an id. net/http does not accept a pattern without a method beside that {id}, so done adds
// a pattern for each of these methods.
func (r *router) word(pattern string, h http.HandlerFunc) {
	r.wordRoute(pattern, r.withoutDryRun(pattern, h))
}

// wordRoute adds a route, as word does, whose handler knows dry runs.
func (r *router) wordRoute(pattern string, h http.HandlerFunc) {
	method, path, _ := strings.Cut(pattern, " ")
	r.mux.HandleFunc(pattern, h)
	r.words[path] = append(r.words[path], method)
	r.served = append(r.served, pattern)
}

// text adds the routes on which clients send requests for text. Each shape lists its own in its
// Descriptor: grep -rn Pattern providers/shapes.
func (r *router) text(known []*shapes.Shape, d *text.Handlers) {
	for _, shape := range known {
		for _, route := range shape.Routes {
			add := r.route
			if route.Word {
				add = r.wordRoute
			}
			add(route.Pattern, d.Handle(shape, route))
		}
	}
}

// tasks adds the routes of shapes that are not about text. Each shape lists its own in its Descriptor, as those of
// text do.
func (r *router) tasks(known []*shapes.Descriptor, d *text.Handlers) {
	for _, shape := range known {
		for _, route := range shape.Routes {
			if h := d.Tasks[route.Task]; h != nil {
				r.route(route.Pattern, h)
			}
		}
	}
}

// videos adds the routes of video jobs, except for those of watching them.
func (r *router) videos(m *media.Handlers) {
	r.handle("POST /v1/videos", m.CreateVideo)
	r.handle("GET /v1/videos", m.ListVideos)
	r.handle("GET /v1/videos/{id}", m.Video)
	r.handle("DELETE /v1/videos/{id}", m.DeleteVideo)
	r.handle("POST /v1/videos/{id}/remix", m.RemixVideo)
	r.handle("GET /v1/videos/{id}/content", m.VideoContent)
	r.word("POST /v1/videos/edits", m.EditVideo)
	r.word("POST /v1/videos/extensions", m.ExtendVideo)
}

// done completes the router: every known path answers other methods with 405, and unknown paths get suggestions.
func (r *router) done() http.Handler {
	for path, methods := range r.words {
		for _, other := range r.methods[path[:strings.LastIndexByte(path, '/')+1]+"{id}"] {
			if !slices.Contains(methods, other) {
				r.mux.HandleFunc(other+" "+path, r.notAllowed)
			}
		}
		r.words[path] = allowed(methods)
	}
	for path, methods := range r.methods {
		r.methods[path] = allowed(methods)
		r.mux.HandleFunc(path, r.notAllowed)
		if versions, _ := cutVersions(path); len(versions) == 1 && !slices.Contains(r.versions, versions[0]) {
			r.versions = append(r.versions, versions[0])
		}
	}
	slices.Sort(r.versions)
	r.known = newLikenesses(r)
	r.mux.HandleFunc("/", r.notFound)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if unclean(req.URL.Path) {
			r.notFound(w, req)
		} else {
			r.mux.ServeHTTP(w, req)
		}
		accesslog.Routed(w, routeOf(req.Pattern))
	})
}

// allowed returns the methods of a path as the Allow header lists them.
func allowed(methods []string) []string {
	if slices.Contains(methods, http.MethodGet) {
		methods = append(methods, http.MethodHead) // net/http serves HEAD with the handler of GET
	}
	slices.Sort(methods)
	return methods
}

// notAllowed answers a method that the path does not have, in the dialect of the path.
func (r *router) notAllowed(w http.ResponseWriter, req *http.Request) {
	methods, ok := r.words[req.URL.Path]
	if !ok {
		methods = r.methods[routeOf(req.Pattern)]
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	envelope.Write(w, r.dialect(req.URL.Path), envelope.MethodNotAllowed(req.Method, methods))
}

// notFound serves a request whose path has no route. If it is certain which path the client meant, the handler of that
// path serves the request. Otherwise notFound writes a page for people or the error 404.
func (r *router) notFound(w http.ResponseWriter, req *http.Request) {
	// An encoded slash is part of an id, which the path that locate returns would divide.
	encoded := strings.Contains(strings.ToLower(req.URL.RawPath), "%2f")
	if path, ok := r.locate(req.Method, req.URL.Path); ok && !encoded {
		to := moved(req, path)
		r.mux.ServeHTTP(w, to)
		req.Pattern = to.Pattern
		return
	}
	// A page is only for addresses that people open. A path of the API is answered with an error that API clients read.
	if versions, _ := cutVersions(req.URL.Path); r.missing != nil && len(versions) == 0 && !unclean(req.URL.Path) &&
		r.missing(w, req) {
		return
	}
	err := envelope.NotFound(req.URL.Path, r.suggest(req.URL.Path))
	for _, models := range r.modelPaths {
		if name, ok := strings.CutPrefix(req.URL.Path, models); ok {
			err = envelope.ModelNotFound(name)
		}
	}
	envelope.Write(w, r.dialect(req.URL.Path), err)
}

// unclean reports whether net/http would redirect path to a cleaned one. The router refuses it.
func unclean(path string) bool {
	return path == "" || path[0] != '/' || strings.Contains(path, "//") ||
		strings.Contains(path, "/./") || strings.Contains(path, "/../") ||
		strings.HasSuffix(path, "/.") || strings.HasSuffix(path, "/..")
}
