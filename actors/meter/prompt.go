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
//
// A run that is long enough has one of every mediaRun bytes in it: only those are
// looked at, and what is around them.
func promptTokens(body []byte) int64 {
	text, media := len(body), int64(0)
	for at := mediaRun - 1; at < len(body); at += mediaRun {
		if !base64Digit[body[at]] {
			continue
		}
		from, to := at, at+1
		for from > 0 && base64Digit[body[from-1]] {
			from--
		}
		for to < len(body) && base64Digit[body[to]] {
			to++
		}
		if run := to - from; run >= mediaRun {
			text, media = text-run, media+mediaTokens
		}
		at += (to - 1 - at) / mediaRun * mediaRun // the last of them in this run
	}
	return tokens.Guess(text) + media
}

var base64Digit = func() (set [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_") {
		set[c] = true
	}
	return set
}()
