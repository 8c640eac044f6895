package upstream

import (
	"testing"
	"time"
)

func TestTheSizeOfAPromptIsReadFromTheVendorsWords(t *testing.T) {
	for message, want := range map[string]PromptSize{
		"too long: 210,000 tokens > 200,000":                                               {210000, 0, 200000},
		"exceed context limit: 190000 + 20000 > 200000":                                    {190000, 20000, 200000},
		"maximum context length is 8192 tokens. But your messages resulted in 9000 tokens": {9000, 0, 8192},
		"maximum context length is 100: 120 tokens (90 in the prompt, 30 in it)":           {90, 30, 100},
		"maximum context length is 100: 150 tokens (120 in the input, 30 more)":            {120, 0, 100},
		"The input token count (12) exceeds the maximum number of tokens allowed (10).":    {12, 0, 10},
		"the maximum context length is 9000 tokens, and you sent 12 tokens":                {},
		"prompt is too long: 99999999999999999999 tokens > 1 maximum":                      {},
		"the context is full": {},
	} {
		if got := promptSize(message); got != want {
			t.Errorf("%q: got %+v, want %+v", message, got, want)
		}
	}
}

func TestAWaitIsReadFromTheVendorsWords(t *testing.T) {
	for message, want := range map[string]time.Duration{
		"Please try again in 7.66s. Visit":             7660 * time.Millisecond,
		"try again in 1m26.4s":                         86400 * time.Millisecond,
		"Please try again in 120ms.":                   120 * time.Millisecond,
		"Please retry after 10 seconds.":               10 * time.Second,
		"Try again in 2 minutes":                       2 * time.Minute,
		"try again in 99999h":                          time.Hour,
		"try again in a while":                         0,
		"try again in 5 dwarves":                       0,
		"we try in 5s, and you may try again tomorrow": 0,
	} {
		if got := waitIn(message); got != want {
			t.Errorf("%q: got %s, want %s", message, got, want)
		}
	}
}
