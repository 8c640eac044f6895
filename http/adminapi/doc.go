// Package adminapi is the HTTP API of administration below /admin/v1: users,
// keys, money, redeem codes, apps, receipts and usage. Programs reach it with a
// token of administration, the operator's commands through the control socket or,
// if no gateway runs, in their own process: one contract for all three.
//
//	routes    the table that is served and described (OpenAPI)
//	call      one request: query and body read strictly, errors in the envelope
//	Guard     who may come in over the network
//	Client    the commands' side
//
// It decides nothing of what it serves: rules of users and keys are the
// registry's (actors/tokens), those of money the ledger's. Pages for people are
// not here either.
package adminapi
