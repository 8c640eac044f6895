package oauth

import (
	"bytes"
	"net/http"
	"time"

	"stagedoor/providers/byterange"
)

// logo serves the logo of an app, and 404 for an app that is disabled or has none. It needs no
// session, because the sign-in page shows it. The picture is always a PNG that this program has
// encoded, and the headers keep browsers from taking it for anything else.
func (s *Service) logo(w http.ResponseWriter, r *http.Request) {
	app, err := s.options.Registry.AppByClientID(r.PathValue("client_id"))
	if err != nil || app.Logo == nil || !app.Disabled.IsZero() {
		s.writePage(w, r, http.StatusNotFound, failureNoLogo)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "image/png")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "private, max-age=86400")
	byterange.Correct(r.Header)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(app.Logo))
}
