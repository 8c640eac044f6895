// Package sdk drives a running gateway with the vendors' own Go clients: plain and
// streamed replies, tools, structured output, errors and abandoned streams. It is a
// module of its own, so that the clients and what they need stay out of the
// product's go.mod. Start it with ../run.sh.
package sdk
