// Package meter keeps the money of text requests: it holds what a request may
// cost before its first upstream call, extends the hold of a stream that was
// given no end, and settles by how the request ended.
//
// It is what stands between actors/text, which knows how requests go, and ledger,
// which knows money. It is not for limits of rates, nor for media jobs, which ask
// the ledger themselves.
package meter
