// Package work stores what outlives the request that created it: responses with their event logs,
// conversations, finished replies for repeated requests, video jobs, deliveries to webhooks, and
// the pauses of providers.
//
// # Usage
//
// The header of a response and the record of a video job are in memory and are found through a
// View. Bodies, inputs, requests and event logs are read from disk by the functions whose names
// begin with Read. Each record belongs to an owner (state.Owner). For other owners it does not
// exist. Watch functions return a channel that is closed by the next change.
//
//	header, err := work.FindResponse(s.View(), id, owner)
//	video, err := state.Do(ctx, s, func(tx *state.Tx) (work.Video, error) { return work.PutVideo(tx, video) })
//
// The command that ends a video job also adds its deliveries, so an event is sent if and only if
// the job has ended.
//
// # Limits
//
// Each owner keeps at most a quota of responses (SetResponseQuota). All owners together keep
// MaxResponses, and at most MaxDeliveries deliveries wait. state.Sweep removes records by age. The
// id of a removed response is remembered for GoneResponseFor, and a response that its provider also
// keeps is deleted there (ListUpstreamDeletions).
//
// # Errors
//
// A command returns state.ErrNotFound, state.ErrExists, state.ErrInvalid, state.ErrTooLarge,
// state.ErrFinished or a *QuotaError. ReadChain can return ErrChainTooLong, and the functions for conversations
// return errors of their own (conversations.go).
//
// # Files
//
//	responses.go events.go chain.go turns.go        responses, their event logs, and what continues them
//	conversations.go compactions.go                 conversations
//	goneresponses.go sweepresponses.go quota.go     what is removed, and what an owner may keep
//	replies.go                                      replies for repeated requests
//	videos.go videokeys.go videochanges.go videodeletions.go   video jobs
//	webhooks.go alerts.go pauses.go                 deliveries, alerts, paused providers
//	erase.go verify.go module.go                    erasure of an owner, checks, the tables
package work
