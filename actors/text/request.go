package text

import (
	"context"
	"sync"
	"time"

	"stagedoor/actors/engine"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes"
)

// Request is one request, which has been checked and routed. It is not changed after Begin.
type Request struct {
	ID      string // request id
	Inbound *shapes.Shape
	Mode    shapes.Mode
	In      shapes.Params
	Head    shapes.Head
	// Body is the client's JSON. It must stay as it is until the Reply is over.
	Body []byte
	// Plan lists the candidates in the order in which they are tried. It is never empty.
	Plan []catalog.Candidate
	// Key is the id of the key that the request came with. Owner is its user, or the key if it has
	// no user. Limiters, memory and remembered signatures are divided by owner.
	Key, Owner string
	// KeyGeneration is that of the keys when the key was found good; see flow.Registry.Guard.
	KeyGeneration uint64
	// Class is the priority class of the limiters.
	Class int
	// Tokens is the estimate that limiters reserve.
	Tokens int
	// ReplyID presets the id of a responses reply; "" lets the emitter choose.
	ReplyID string
	// Translate rules out that the reply is passed through: it must be in the gateway's own name.
	Translate bool
	// Meter, if set, holds and settles the request's money.
	Meter Meter
	// Dry, if set, keeps the calls of the request, of which none is sent.
	Dry *engine.DryRun
	// Ended, if set, is called once with how the request went, before its reply ends. It must
	// not wait.
	Ended func(o *Outcome)
	// PreviousResponseID is echoed by a responses reply whose history is in Body already.
	PreviousResponseID string
	// Env, if set, takes the place of the service's for translation, such as in a replay.
	Env *dialogue.Env
	// Complete, if set, is shown the last event's data, or the whole reply,
	// before the client gets it. On an error the client gets replacement as
	// its last event instead, or the error itself if nothing was sent yet.
	Complete func(ctx context.Context, m Meta, last []byte) (replacement []byte, err *dialogue.Error)
}

// Chunk is a piece of reply on its way to the client.
type Chunk struct {
	// Meta comes with the first chunk and fixes status and headers.
	Meta *Meta
	// Data is to be written and flushed, then freed. It may be nil.
	Data *Buffer
	// Err, only in a first chunk, which then is the last one too, is the
	// failure of a request of which nothing was sent yet.
	Err *dialogue.Error
	// Failed, only in a last chunk, says that Data ends a stream that failed.
	Failed *dialogue.Error
}

// Meta has what the headers of a reply say.
type Meta struct {
	Provider  string
	Model     string // the upstream's name
	Degraded  string // reason of X-Structured-Output-Degraded, or ""
	Losses    string // X-Stagedoor-Losses
	Queued    time.Duration
	Attempts  int
	Untouched bool
}

// Outcome describes the end of a request for logs, metrics and the ledger.
type Outcome struct {
	Meta
	Usage  dialogue.Usage
	Reason dialogue.Reason
	// ReplyModel is the model that the reply names, if the price may depend on it. It is text of the provider.
	ReplyModel string
	// ServiceTier is the service tier that the reply names, or "". It is text of the provider, too.
	ServiceTier string
	// Counted is the gateway's own count of the output tokens delivered, a guess.
	Counted int64
	// Err is the failure that the client got, if any.
	Err *dialogue.Error
	// Accepted is set if the provider of the last attempt answered with status 200, so that it may
	// charge for the reply.
	Accepted bool
	// Calls counts the calls that the last attempt was divided into, and AcceptedCalls is how many
	// of them the provider answered with a 2xx status.
	Calls, AcceptedCalls int
	// Overtaken is set if another target served the request (hedging).
	Overtaken bool
	// Committed is set if the client got an answer, or the beginning of one.
	Committed bool
}

// Buffer is a pooled byte slice. Its receiver frees it.
type Buffer struct {
	B      []byte
	memory memory.Claim // for B, if it is large
}

// largeReply is the size from which on a piece of a reply is counted while it waits for
// its client.
const largeReply = 256 << 10

// count counts a large piece in the memory of its owner while it waits for the client. The memory
// is in use already, so it is never refused.
func (b *Buffer) count(pool memory.Pool, owner string) {
	if len(b.B) >= largeReply {
		b.memory = memory.NewClaim(pool, owner)
		b.memory.Adopt(int64(cap(b.B)))
	}
}

var buffers = sync.Pool{New: func() any { return &Buffer{B: make([]byte, 0, 4<<10)} }}

// maxPooled is the capacity beyond which a buffer is not reused. One large reply would otherwise
// keep its memory for good.
const maxPooled = 64 << 10

func newBuffer() *Buffer { return buffers.Get().(*Buffer) }

// ready returns b, or a new buffer for nil. A stream that waits for its upstream has no buffer,
// because thousands wait at a time.
func (b *Buffer) ready() *Buffer {
	if b == nil {
		return newBuffer()
	}
	return b
}

// Len returns the number of bytes in the buffer, which is 0 for a nil Buffer.
func (b *Buffer) Len() int {
	if b == nil {
		return 0
	}
	return len(b.B)
}

// Free returns the buffer to the pool. It must not be used after that. A nil Buffer is allowed.
func (b *Buffer) Free() {
	if b == nil {
		return
	}
	b.memory.End()
	if cap(b.B) > maxPooled {
		return
	}
	b.B = b.B[:0]
	buffers.Put(b)
}
