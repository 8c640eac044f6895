// Package work keeps what outlives the request that began it: stored responses with their event logs,
// conversations, finished replies for repeated requests, video jobs, deliveries to webhooks, and the pauses of
// providers.
//
// # Usage
//
// The header of a response and the record of a video job are in memory and found through a View. Bodies, inputs,
// requests and event logs are read from disk by the functions that begin with Read. A record belongs to an owner
// (state.Owner), and for other owners it does not exist. Watch functions return a channel that is closed by the next
// change.
//
//	header, changed, err := work.WatchResponse(s, id, owner)
//	video, err := state.Do(ctx, s, func(tx *state.Tx) (work.Video, error) { return work.PutVideo(tx, video) })
//
// The end of a video job adds its deliveries in the same commit, so that an event is sent exactly if the job has ended.
//
// # Limits
//
// Each owner keeps at most a quota of responses (SetResponseQuota), all owners together MaxResponses, and MaxDeliveries
// bounds the deliveries that wait. Records leave by age through state.Sweep. The id of a removed response is remembered
// for GoneResponseFor, and a response that its provider keeps is deleted there, too (ListUpstreamDeletions).
//
// # Errors
//
// A command refuses with state.ErrNotFound, state.ErrExists, state.ErrInvalid, state.ErrTooLarge, state.ErrFinished or
// a *QuotaError. ReadChain fails with ErrChainTooLong.
package work
