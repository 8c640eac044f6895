// Package browser knows who sits at a browser: it keeps the session in a cookie, tells visitors apart before they
// have signed in, and sees to it that a form comes from the browser it was drawn for. Every package that serves pages
// uses it.
//
// It is not for API clients, which carry keys or tokens and no cookies.
//
// # Usage
//
// Guard.Visitor returns the visitor of a request: signed in, or a guest with a name of its own. FormToken goes into a
// form, and CheckForm accepts the form only from the browser to which it was given. Seal and Unseal carry values
// through a page which its browser must not read or change, such as the secret of a second factor that is not
// confirmed yet.
//
// # Concurrency
//
// A Guard is safe for concurrent use. It keeps nothing between two requests.
//
// # Errors
//
// ErrForged is returned for a form that another site sent, or that was drawn for another browser or purpose.
// CodeRequired is not a failure: the password was right, and a code is missing.
//
// # Files
//
//	guard.go sender.go device.go     who has signed in, from where, and on which device
//	form.go link.go next.go seal.go  forms, links and addresses that are safe to follow, sealed text
package browser
