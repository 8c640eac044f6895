package dialogue

// ContextEdit leaves something out of a conversation that has grown long, because its client asks for that in place of
// sending a shorter one. The decoder reads it, actors/text makes it where the upstream does not, and the emitter
// reports it to the client.
type ContextEdit struct {
	// Type is the vendor's name of the edit.
	Type string
	// Thinking is set if the edit clears old thinking. Otherwise it clears the results of old calls.
	Thinking bool
	// Keep is the number of the newest answers with thinking, or of the newest calls, that stay.
	Keep int64
	// AfterTokens and AfterCalls are the length from which on results are cleared; 0 is no condition.
	AfterTokens, AfterCalls int64
	// AtLeast is the number of tokens below which clearing results is not worth a new prompt cache.
	AtLeast int64
	// AllArgs, or the names in Args, clear the arguments of the calls as well. Exclude names the tools of which nothing
	// is cleared.
	AllArgs       bool
	Args, Exclude map[string]bool

	// Cleared is the number of answers or calls of which something was cleared, and Tokens about how many tokens that
	// has saved.
	Cleared int
	Tokens  int64
}

// ClearsArgs reports whether the edit clears the arguments of calls of a tool together with their results.
func (e *ContextEdit) ClearsArgs(tool string) bool { return e.AllArgs || e.Args[tool] }
