package cases

// A Shape is one of the five wire forms a gateway speaks.
type Shape string

// The shapes.
const (
	Chat        Shape = "chat"
	Responses   Shape = "responses"
	Completions Shape = "completions"
	Messages    Shape = "messages"
	Gemini      Shape = "gemini"
)

// Shapes lists all of them.
var Shapes = []Shape{Chat, Responses, Completions, Messages, Gemini}

// Path returns the path of the shape; for Gemini it contains model and mode.
func (s Shape) Path(model string, stream bool) string {
	switch s {
	case Chat:
		return "/v1/chat/completions"
	case Responses:
		return "/v1/responses"
	case Completions:
		return "/v1/completions"
	case Messages:
		return "/v1/messages"
	}
	if stream {
		return "/v1beta/models/" + model + ":streamGenerateContent?alt=sse"
	}
	return "/v1beta/models/" + model + ":generateContent"
}
