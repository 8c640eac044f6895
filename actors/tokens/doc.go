// Package tokens is the registry of users, sessions, OAuth apps, grants and
// tokens: everything that decides who somebody is and what an app may read of
// them (imagegen-and-oauth.md 2.2-2.4, 4.3-4.7, 5).
//
// It is not for HTTP, pages or money, and knows no redirects: those who serve
// them call Client.
package tokens
