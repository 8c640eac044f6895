package pages

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"sync"
)

//go:embed templates
var sources embed.FS

// Prepare parses what the pages are made of, so that the first visitor does not wait for it. It panics if a template is
// wrong.
func Prepare() {
	templates()
	documented()
	assets()
}

// templates are not parsed when the program starts, because commands, of which each is a process, show no page.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"asset": assetPath, "dollars": Dollars, "count": formatCount, "day": formatDay, "lastday": formatLastDay,
		"time": formatTime, "machine": formatMachine,
		"list": formatList, "place": PlaceText, "money": formatMoney, "tokens": formatTokens, "short": ShortID,
	}).ParseFS(sources, "templates/*.html"))
})

// View is the data of one page.
type View interface{ frame() frame }

// frame holds the data with which the layout surrounds a page.
type frame struct {
	template string
	title    string
	visitor  string // the name of the signed-in user
	// leads limits the addresses of the page's forms, redirects included.
	leads leads
	width string // class of the main element, "": the usual width
	// script and style are assets of this page alone; "": it has none.
	script, style string
	// viewer is set on pages behind sign-in, and here is their place in the navigation.
	viewer *Viewer
	here   place
}

// with returns the frame with a script, a style and a width, each of which may be "".
func (f frame) with(script, style, width string) frame {
	f.script, f.style, f.width = script, style, width
	return f
}

// Classes of the main element.
const (
	slim = "slim" // for a form or a message
	full = "full" // for tables with many columns
)

// leads is a value of the directive form-action. Browsers check every redirect that follows a form against it, also the
// app's own redirects after its callback. Naming the callback's host would therefore break apps that redirect to
// another host.
type leads string

// The values of leads: no form, forms of this service, and sign-in pages that lead on to an app on the web or to one on
// the user's own machine, which may use http.
const (
	nowhere    leads = "'none'"
	toSelf     leads = "'self'"
	toApps     leads = "'self' https:"
	toPrograms leads = "'self' https: http:"
)

// document is the data of layout.html.
type document struct {
	Title, Visitor string
	Width          string
	Scripted       bool // the page has the behaviour that all pages share (assets/shell.js)
	Script, Style  string
	Theme          string // light, dark, or "" for the theme of the system
	Here           string // the address to come back to after the theme was changed
	Viewer         *Viewer
	Nav            []linkGroup
	Body           template.HTML
}

// Write answers r with a page, in the theme that the browser's cookie asks for.
func Write(w http.ResponseWriter, r *http.Request, status int, v View) error {
	f := v.frame()
	var body, page bytes.Buffer
	if err := templates().ExecuteTemplate(&body, f.template, v); err != nil {
		return fmt.Errorf("draw %s: %w", f.template, err)
	}
	// Pages that ask for a password or a consent have no script at all, unless they move or ask for a passkey.
	scripted := f.viewer != nil || f.script != ""
	d := document{
		Title:    f.title,
		Visitor:  f.visitor,
		Width:    f.width,
		Scripted: scripted,
		Script:   f.script,
		Style:    f.style,
		Theme:    themeOf(r),
		Viewer:   f.viewer,
		Body:     template.HTML(body.String()),
	} // escaped by its own template
	if f.viewer != nil {
		d.Nav = f.viewer.nav(f.here)
	}
	if r.Method == http.MethodGet {
		d.Here = addressOf(r)
	}
	if err := templates().ExecuteTemplate(&page, "layout.html", d); err != nil {
		return fmt.Errorf("draw the frame of %s: %w", f.template, err)
	}
	Protect(w.Header(), f.leads, scripted)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(page.Len()))
	w.WriteHeader(status)
	_, err := w.Write(page.Bytes())
	return err
}

// Address returns a path with a query. Parameters without a value are left out.
func Address(path string, query map[string]string) string {
	v := url.Values{}
	for name, value := range query {
		if value != "" {
			v.Set(name, value)
		}
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// place64 returns a place in a list as a parameter of an address, or "" for the beginning of the list.
func place64(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// addressOf returns the path and the query of r without the notice that a form left there.
func addressOf(r *http.Request) string {
	query := r.URL.Query()
	query.Del("done")
	return (&url.URL{Path: r.URL.Path, RawQuery: query.Encode()}).String()
}

// Protect sets the headers of a page: nothing is loaded from elsewhere, no script
// runs except the asset of a page that is scripted, no site frames it or learns its
// address, and no cache keeps it.
func Protect(h http.Header, to leads, scripted bool) {
	policy := "default-src 'none'; style-src 'self'; img-src 'self'; "
	if scripted {
		// A blob is what the script made itself, of what it fetched with a key.
		policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' blob:; media-src 'self' blob:; " +
			"require-trusted-types-for 'script'; trusted-types 'none'; "
	}
	h.Set("Content-Security-Policy", policy+"form-action "+string(to)+"; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	NoStore(h)
}

// NoStore keeps an answer out of caches, and its address out of referrers.
func NoStore(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Pragma", "no-cache")
	h.Set("Referrer-Policy", "no-referrer")
}
