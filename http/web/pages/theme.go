package pages

import "net/http"

// ThemeCookie is the name of the cookie with the theme that a browser asked for. Its value is light or dark. A browser
// without it has the theme of its system.
const ThemeCookie = "stagedoor-theme"

// themeLife is the time for which a browser keeps the theme.
const themeLife = 365 * 24 * 60 * 60 // seconds

// SetTheme makes the browser ask for a theme with every request: light, dark, or anything else for the system's.
func SetTheme(w http.ResponseWriter, theme string, secure bool) {
	c := &http.Cookie{Name: ThemeCookie, Value: theme, Path: "/", MaxAge: themeLife, Secure: secure,
		HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if !isTheme(theme) {
		c.Value, c.MaxAge = "", -1
	}
	http.SetCookie(w, c)
}

// themeOf returns the theme that the person has chosen, or "" for the system's.
func themeOf(r *http.Request) string {
	if c, err := r.Cookie(ThemeCookie); err == nil && isTheme(c.Value) {
		return c.Value
	}
	return ""
}

// isTheme reports whether a value, which a browser has sent, is one of the themes.
func isTheme(theme string) bool { return theme == "light" || theme == "dark" }
