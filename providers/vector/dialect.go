package vector

import (
	"errors"
	"net/http"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
)

// Dialect is one vendor's form of requests for embeddings. A provider that serves the shape takes requests in it.
type Dialect struct {
	// Shape is the descriptor of the shape that the dialect belongs to.
	Shape *shapes.Descriptor
	// Read reads the path of a request. ok is false if it does not lead to embeddings.
	Read func(r *http.Request) (in shapes.Params, ok bool)
	// Envelope returns the body of an error reply.
	Envelope func(err *dialogue.Error) []byte
	Inbound
	Outbound
	// Reply names the members that a Tap looks for, and Usage reads the one that counts tokens.
	Reply ReplyMembers
	Usage func(raw []byte) dialogue.Usage
	// CutsUnscaled says that vectors which the upstream has cut do not have length 1 any more. Clients of shapes whose
	// vectors have that length rank by the dot product, so they get them scaled.
	CutsUnscaled bool
}

// ReplyMembers are members at the top of a reply.
type ReplyMembers struct {
	Vectors []string // one of them must be there
	Usage   string
	Model   string // "" if replies do not name the model
	Error   string
}

// Inbound reads the requests of clients and writes their replies.
type Inbound interface {
	// Check reads a request whose JSON is valid. An error is a *dialogue.Error that names the field and its rule.
	Check(body []byte, in shapes.Params) (*Request, error)
	// AppendStart appends the text before the first vector, AppendOpening the text before the numbers of vector i,
	// and AppendEnd what follows the last vector. The object of a vector ends with a brace.
	AppendStart(dst []byte, r *Request) []byte
	AppendOpening(dst []byte, r *Request, i int) []byte
	AppendEnd(dst []byte, r *Request, usage dialogue.Usage) []byte
}

// Outbound writes calls for upstreams and reads their replies.
type Outbound interface {
	// Batch returns the inputs of the next call, which begin with input number from.
	Batch(r *Request, from int) Batch
	// Encode writes the call for a batch. A request of the upstream's own shape that fits into one call stays as the
	// client wrote it, but for the model. Otherwise, what the shape cannot express is recorded in rep, or refused
	// with a *dialogue.Error if leaving it out would change the vectors.
	Encode(r *Request, b Batch, model string, rep *dialogue.Report) (shapes.Call, error)
	// Decode finds the vectors in the reply to a call for this number of inputs. They point into body. An error is a
	// *dialogue.Error.
	Decode(body []byte, inputs int) (*Reply, error)
	// DecodeError reads an upstream's refusal (status >= 400).
	DecodeError(status int, header http.Header, body []byte) *dialogue.Error
	// Authorize sets the header in which upstreams expect a key.
	Authorize(h http.Header, key string)
}

// Reply has the vectors that an upstream returned for one call.
type Reply struct {
	// Vectors are in the order of the inputs. Each is a JSON list of numbers, or base64 in quotes.
	Vectors [][]byte
	Usage   dialogue.Usage
	Model   string // that the reply names, or ""
}

// Source appends the numbers of the vector of input i, in the form that the client asked for.
type Source func(dst []byte, i int) ([]byte, error)

// chunk sets the size of the pieces of a reply, in bytes.
const chunk = 64 << 10

// Write writes the reply to r and calls send with each piece of it, which then belongs to send. It holds no more than
// one piece and one vector at a time. end, if not nil, is called before the last piece is sent; an error of source,
// send or end ends the reply.
func Write(in Inbound, r *Request, source Source, usage dialogue.Usage, end func() error,
	send func(piece []byte, last bool) error) error {
	dst := in.AppendStart(nil, r)
	for i := range r.Inputs {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = source(in.AppendOpening(dst, r, i), i); err != nil {
			return err
		}
		dst = append(dst, '}')
		if len(dst) >= chunk && i < len(r.Inputs)-1 {
			if err := send(dst, false); err != nil {
				return err
			}
			dst = make([]byte, 0, cap(dst))
		}
	}
	if end != nil {
		if err := end(); err != nil {
			return err
		}
	}
	return send(in.AppendEnd(dst, r, usage), true)
}

// Complete returns reply once r has read all of it, or a *dialogue.Error that blames the upstream. found is the number
// of inputs for which a vector was found, and reply.Vectors has a place for each input. err is the error with which the
// walk over the reply ended. A *dialogue.Error in it is returned as it is unless its status is 400, because a 400 says
// that the client has sent broken JSON, and it was the upstream that did.
func Complete(r *fields.Reader, reply *Reply, found int, err error) (*Reply, error) {
	var said *dialogue.Error
	if errors.As(err, &said) && said.Status != http.StatusBadRequest {
		return nil, said
	}
	if err != nil {
		return nil, dialogue.BadUpstream(err.Error())
	}
	if bad := r.BadReply("reply"); bad != nil {
		return nil, bad
	}
	if found != len(reply.Vectors) {
		return nil, dialogue.BadUpstream("a reply with another number of vectors than inputs")
	}
	return reply, nil
}
