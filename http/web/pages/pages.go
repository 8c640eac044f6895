package pages

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
)

//go:embed templates
var sources embed.FS

// set is parsed once: a template that is wrong is a program that does not start.
var set = template.Must(template.New("").Funcs(template.FuncMap{
	"asset": assetPath, "dollars": Dollars, "count": formatCount, "day": formatDay, "lastday": formatLastDay, "time": formatTime, "machine": formatMachine,
	"list": formatList,
}).ParseFS(sources, "templates/*.html"))

// View is the data of one page.
type View interface{ frame() frame }

// frame is what a page tells the frame around it.
type frame struct {
	template string
	title    string
	visitor  string // the name of who is signed in
	// leads is where the page's forms may end, redirects included.
	leads leads
	wide  bool
	// script and style are assets of this page alone; "": it has none.
	script, style string
	// desk is of pages behind sign-in, here where those are in the navigation.
	desk *Desk
	here place
}

// leads is a value of form-action. Browsers hold every redirect that follows a
// form against it, the app's own ones behind its callback included: naming the
// callback's host would break those that send people on to another.
type leads string

const (
	nowhere    leads = "'none'"
	toSelf     leads = "'self'"
	toApps     leads = "'self' https:"
	toPrograms leads = "'self' https: http:"
)

// document is what layout.html gets.
type document struct {
	Title, Visitor string
	Wide           bool
	Script, Style  string
	Desk           *Desk
	Nav, Parts     []Link
	Body           template.HTML
}

// Write answers with a page.
func Write(w http.ResponseWriter, status int, v View) error {
	f := v.frame()
	var body, page bytes.Buffer
	if err := set.ExecuteTemplate(&body, f.template, v); err != nil {
		return fmt.Errorf("draw %s: %w", f.template, err)
	}
	d := document{Title: f.title, Visitor: f.visitor, Wide: f.wide, Script: f.script, Style: f.style, Desk: f.desk, Body: template.HTML(body.String())} // escaped by its own template
	if f.desk != nil {
		d.Nav, d.Parts = f.desk.nav(f.here), parts(f.here)
	}
	if err := set.ExecuteTemplate(&page, "layout.html", d); err != nil {
		return fmt.Errorf("draw the frame of %s: %w", f.template, err)
	}
	Protect(w.Header(), f.leads, f.script != "")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(page.Len()))
	w.WriteHeader(status)
	_, err := w.Write(page.Bytes())
	return err
}

// Protect sets the headers of a page: nothing is loaded from elsewhere, no script
// runs except the asset of a page that is scripted, nobody frames it, keeps it or
// learns its address.
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
