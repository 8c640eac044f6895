package portal

import (
	"bytes"
	"cmp"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"

	"stagedoor/docs"
	"stagedoor/http/accesslog"
	"stagedoor/http/web/pages"
	"stagedoor/state/identity"
)

// pathAsk takes the question of the first page from a browser without a script.
const (
	pathFirst = "/"
	pathAsk   = "/ask"
)

// purposeAsk is the purpose of that form's token.
const purposeAsk = "ask"

// firstPage serves the page at /. It leads to the account or to the sign-in page once there are users.
func (p *Portal) firstPage(w http.ResponseWriter, r *http.Request) {
	view, ok := p.newFirst(w, r)
	if ok {
		p.write(w, r, http.StatusOK, view)
	}
}

// newFirst returns the page for the browser of r. If there is another page for it, the browser is sent there and ok is
// false.
func (p *Portal) newFirst(w http.ResponseWriter, r *http.Request) (view *pages.First, ok bool) {
	visitor, err := p.options.Browser.Visitor(r)
	switch {
	case err != nil:
		p.busy(w, r, err)
		return nil, false
	case visitor.SignedIn():
		seeOther(w, pathAccount)
		return nil, false
	case len(identity.ListUsers(p.options.State.View(), 0, 1)) > 0:
		seeOther(w, pathSignIn)
		return nil, false
	}
	view = &pages.First{Address: p.addressFor(r), Models: p.options.TextModels(), Model: p.exampleModel()}
	if p.options.FirstKey != nil {
		view.Key = p.options.FirstKey(r)
	}
	view.Clients = pages.ClientSettings(view.Address, view.Key, view.Model)
	if view.Key == "" {
		return view, true
	}
	if visitor, err = p.options.Browser.EnsureVisitor(w, r); err != nil {
		p.busy(w, r, err)
		return nil, false
	}
	view.Form = pages.Form{Action: pathAsk, Token: p.options.Browser.FormToken(&visitor, purposeAsk)}
	return view, true
}

// exampleModel returns the name of a model for examples, "" if only patterns say which models there are.
func (p *Portal) exampleModel() string {
	if names := p.options.TextModels(); len(names) > 0 {
		return names[0]
	}
	return ""
}

// namedHost matches names and addresses with or without a port. Other texts are not shown as an address, because
// clients choose the header Host freely and readers copy the address into shells and files.
var namedHost = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

// maxHost bounds the length of a host that is compared with namedHost.
const maxHost = 260

// addressFor returns the address of the gateway as the browser of r reached it. If the header Host cannot be one, it is
// the address that the gateway knows itself by.
func (p *Portal) addressFor(r *http.Request) string {
	known, err := url.Parse(p.options.Address)
	if len(r.Host) > maxHost || !namedHost.MatchString(r.Host) || err == nil && known.Host == r.Host {
		return p.options.Address
	}
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// ask answers the question of a browser that runs no script: the page comes back with the whole reply of next, which
// serves /v1, to a request with the first key.
func (p *Portal) ask(next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		form, visitor, ok := p.readVisitorForm(w, r)
		if !ok {
			return
		}
		if p.options.Browser.CheckForm(r, &visitor, purposeAsk, form.Get("token")) != nil {
			p.write(w, r, http.StatusForbidden, failureForeign)
			return
		}
		view, ok := p.newFirst(w, r)
		if !ok {
			return
		}
		if view.Key == "" {
			seeOther(w, pathFirst)
			return
		}
		view.Question, view.Model = form.Get("question"), form.Get("model")
		view.Answer, view.Problem = askModel(r, next, view, accesslog.RequestID(w))
		p.write(w, r, http.StatusOK, view)
	}
}

// askModel sends the question of the page to next and returns the text of the reply, or why there is none. The request
// keeps the id that the browser's request has, under which the log, the receipts and /flow have it.
func askModel(r *http.Request, next http.Handler, view *pages.First, id string) (answer, problem string) {
	body, err := json.Marshal(map[string]any{"model": view.Model,
		"messages": []map[string]string{{"role": "user", "content": view.Question}}})
	if err != nil {
		return "", "The question cannot be sent."
	}
	inner, err := http.NewRequestWithContext(r.Context(), http.MethodPost, pathV1+"/chat/completions",
		bytes.NewReader(body))
	if err != nil {
		return "", "The question cannot be sent."
	}
	inner.RemoteAddr, inner.Host = r.RemoteAddr, r.Host
	inner.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + view.Key}}
	got := captured{header: http.Header{"X-Request-Id": {id}}}
	next.ServeHTTP(&got, inner)
	var reply struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(got.body.Bytes(), &reply); err != nil || len(reply.Choices) == 0 {
		return "", cmp.Or(reply.Error.Message, "The reply cannot be shown.")
	}
	return reply.Choices[0].Message.Content, ""
}

// captured is a response that is kept, up to maxAnswer bytes.
type captured struct {
	header http.Header
	body   bytes.Buffer
}

// maxAnswer bounds the part of an answer that is kept.
const maxAnswer = 1 << 20

// Header implements http.ResponseWriter.
func (c *captured) Header() http.Header { return c.header }

// WriteHeader implements http.ResponseWriter. The status is not needed.
func (c *captured) WriteHeader(int) {}

// Write implements http.ResponseWriter. It drops what exceeds maxAnswer, so that the handler goes on as with a client.
func (c *captured) Write(b []byte) (int, error) {
	c.body.Write(b[:min(len(b), maxAnswer-c.body.Len())])
	return len(b), nil
}

// document serves a page of the documents as text.
func (p *Portal) document(w http.ResponseWriter, r *http.Request) {
	name := cmp.Or(strings.TrimSuffix(r.PathValue("path"), "/"), "README.md")
	if !fs.ValidPath(name) || path.Ext(name) != ".md" {
		p.write(w, r, http.StatusNotFound, failureDocument)
		return
	}
	text, err := docs.Files.ReadFile(name)
	if err != nil {
		p.write(w, r, http.StatusNotFound, failureDocument)
		return
	}
	pages.Protect(w.Header(), "'none'", false)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write(text)
}
