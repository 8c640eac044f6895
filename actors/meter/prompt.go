package meter

import "stagedoor/providers/tokens"

const (
	// mediaRun is how long a run of base64 must be to be a picture or a file and
	// not text.
	mediaRun = 1 << 10
	// mediaTokens is what each of those counts, whatever its size.
	mediaTokens = 2_000
)

// promptTokens guesses the tokens of a request's body: a token is four bytes,
// but not of what is no text. It errs on the high side, since names and
// punctuation of the JSON count, too.
func promptTokens(body []byte) int64 {
	if len(body) < mediaRun {
		return tokens.Guess(len(body))
	}
	text, media, run := len(body), int64(0), 0
	for _, c := range body {
		if base64Digit[c] {
			run++
			continue
		}
		if run >= mediaRun {
			text, media = text-run, media+mediaTokens
		}
		run = 0
	}
	if run >= mediaRun {
		text, media = text-run, media+mediaTokens
	}
	return tokens.Guess(text) + media
}

var base64Digit = func() (set [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_") {
		set[c] = true
	}
	return set
}()
