// Package browser knows who sits at a browser: it keeps the session in a cookie,
// tells visitors apart before they have signed in, and sees to it that a form
// comes from the browser it was drawn for. Every package that serves pages uses
// it.
//
// It is not for API clients, which carry keys or tokens and no cookies.
package browser
