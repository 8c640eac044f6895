package upstream

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"stagedoor/providers/dialogue"
)

// meaning names the subject of a refusal, beyond its status. Vendors use the same status for different things and
// different statuses for the same thing, so it is read from their codes and, where they have none, from their words.
type meaning uint8

const (
	unclear     meaning = iota
	longPrompt          // prompt, or prompt and answer, do not fit the context window
	largeBody           // the body has too many bytes
	noCredit            // the gateway's account at the vendor has no money left
	badContent          // moderation refused the prompt
	busy                // the vendor has too much load
	noModel             // the vendor does not have the model
	rateLimited         // the gateway's key is at its limit of requests or tokens
)

// meanings are the codes of the vendors, and words of those that have no code, in lower case. The
// first meaning that fits is taken. Most words are phrases, because a message may quote the
// prompt.
var meanings = []struct {
	meaning meaning
	codes   []string
	words   []string
}{
	{longPrompt,
		[]string{"context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded"},
		[]string{"prompt is too long", "exceed context limit", "maximum context length", "maximum prompt length",
			"input token count", "context window", "context size", "context length", "model token limit",
			"too large for model with", "input is too long", "prompt exceeds max length", "reduce the length of",
			"but model only supports up to"}},
	{largeBody,
		[]string{"request_too_large", "payload_too_large"},
		[]string{"request payload size exceeds", "request entity too large", "request exceeds the maximum size"}},
	{noCredit,
		[]string{"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error",
			"credit_balance_too_low", "exceeded_current_quota_error"},
		[]string{"credit balance is too low", "insufficient balance", "insufficient credit", "out of credits",
			"used all available credits", "specified api usage limits", "billing hard limit", "balance is not enough"}},
	{badContent,
		[]string{
			"content_policy_violation",
			"content_filter",
			"moderation_blocked",
			"bio_policy",
			"data_inspection_failed",
			"responsibleaipolicyviolation",
			"image_content_policy_violation",
		},
		[]string{"content filtering policy", "content management policy", "violating our usage policy",
			"input was flagged", "rejected by the safety system", "rejected as a result of our safety system"}},
	{busy,
		[]string{"server_is_overloaded", "slow_down", "overloaded_error", "engine_overloaded_error", "unavailable"},
		[]string{"overloaded"}},
	{noModel, []string{"model_not_found"}, nil},
}

// missingModel finds the texts about a missing model of vendors that have no code for it. The mere word is not enough,
// because proxies add the name of the model to each error, also to those about items and files.
var missingModel = regexp.MustCompile("^models?: |(?:^|[^/\\w])models?(?:[ :/]+[`'\"]?[^\\s`'\"]+[`'\"]?)? " +
	`(?:(?:is|was|could|does|do) )?not\b|(?:unknown|no such|find(?: the)?|access(?: the)?) models?\b`)

// plainCodes say no more of a refusal than its status does.
var plainCodes = []string{"", "404", "not_found", "not_found_error", "notfounderror"}

// refusals are the statuses with which vendors refuse a request for one of the meanings.
var refusals = map[meaning][]int{
	longPrompt: {400, 413, 422, 500},
	largeBody:  {400, 413},
	noCredit:   {400, 402, 403, 429},
	badContent: {400, 403, 422},
	busy:       {429, 503, 529},
	noModel:    {404},
}

// meaningOf finds out what a refusal is about.
func meaningOf(status int, e *dialogue.Error) meaning {
	code, _ := e.Code.(string)
	code, kind, text := strings.ToLower(code), strings.ToLower(e.Type), strings.ToLower(e.Message)
	for _, m := range meanings {
		if slices.Contains(refusals[m.meaning], status) &&
			(slices.Contains(m.codes, code) || slices.Contains(m.codes, kind) || containsAny(text, m.words)) {
			return m.meaning
		}
	}
	switch status {
	case http.StatusNotFound:
		if slices.Contains(plainCodes, code) && missingModel.MatchString(text) {
			return noModel
		}
	case http.StatusTooManyRequests:
		return rateLimited
	case http.StatusRequestEntityTooLarge:
		return largeBody
	case http.StatusServiceUnavailable, 529:
		return busy
	}
	return unclear
}

// containsAny reports whether text contains one of the words.
func containsAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// express gives e, which a client will read, the status and the code by which the client's SDK knows what to do. A
// code that has the same meaning already stays, as does everything that the vendor said besides. The type is the
// vendor's too (gateway.md 7), unless the status changes.
func express(e *dialogue.Error, m meaning, size PromptSize, client dialogue.Traits) {
	code, _ := e.Code.(string)
	known := func(codes ...string) bool { return slices.Contains(codes, code) }
	switch m {
	case longPrompt:
		e.Status, e.Type, e.Code = http.StatusBadRequest, dialogue.TypeInvalidRequest, "context_length_exceeded"
		e.Message = longPromptMessage(e.Message, size, client.LongPrompt)
		if field := cmp.Or(client.Fields[dialogue.Conversation], dialogue.Conversation); client.LongPrompt != nil &&
			!strings.HasPrefix(e.Param, field) {
			e.Param = field // the upstream names none, or one that the client's shape does not have
		}
	case largeBody:
		if e.Status != http.StatusRequestEntityTooLarge {
			e.Status, e.Type = http.StatusRequestEntityTooLarge, dialogue.TypeTooLarge
		}
		e.Code = "request_too_large"
	case badContent:
		if client.Moderation == nil && e.Status != http.StatusBadRequest {
			e.Status, e.Type = http.StatusBadRequest, dialogue.TypeInvalidRequest
		}
		if !known(
			"content_filter",
			"moderation_blocked",
			"bio_policy",
			"image_content_policy_violation",
			"invalid_prompt",
		) {
			e.Code = "content_policy_violation"
		}
		if client.Moderation != nil {
			client.Moderation.Apply(e)
		}
	case busy:
		if e.Status == http.StatusTooManyRequests { // the vendor's type is about a limit
			e.Type = dialogue.TypeOverloaded
		}
		if !known("slow_down") {
			e.Code = "server_is_overloaded"
		}
	case noModel:
		e.Code = "model_not_found"
	case rateLimited:
		if !known("tokens", "requests") {
			e.Code = "rate_limit_exceeded"
		}
	}
}

// PromptSize has the numbers of a prompt that does not fit: its tokens, those of the answer that was asked for
// (0 if they are not the reason), and how many the model takes together. All are 0 if it gives no numbers.
type PromptSize struct{ Prompt, Answer, Limit int64 }

// promptSizes are the forms in which vendors give the numbers, after commas were removed. The names of the groups are
// the fields of PromptSize.
var promptSizes = []*regexp.Regexp{
	regexp.MustCompile(`(?P<Prompt>\d+) \+ (?P<Answer>\d+) > (?P<Limit>\d+)`),
	regexp.MustCompile(`(?P<Prompt>\d+) tokens? > (?P<Limit>\d+)`),
	regexp.MustCompile(`maximum context length is (?P<Limit>\d+)[^(]{0,99}` +
		`\((?P<Prompt>\d+) [^,;()]{0,40}[,;] (?P<Answer>\d+) `),
	regexp.MustCompile(
		`maximum (?:context|prompt) length is (?P<Limit>\d+)[^(]{0,60}? (?P<Prompt>\d+) (?:input )?tokens`,
	),
	regexp.MustCompile(`token count (?:is )?\(?(?P<Prompt>\d+)\)?[^0-9]{1,80}?(?P<Limit>\d+)`),
	regexp.MustCompile(`contains (?P<Prompt>\d+) tokens.{0,60}? model with (?P<Limit>\d+)`),
}

// promptSize reads the numbers from a vendor's message. Numbers by which the prompt would fit are not believed.
func promptSize(message string) PromptSize {
	text := strings.ReplaceAll(message, ",", ";")
	text = digitGroups.ReplaceAllString(text, "$1$2")
	for _, form := range promptSizes {
		m := form.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		number := func(name string) int64 {
			i := form.SubexpIndex(name)
			if i < 0 {
				return 0
			}
			n, err := strconv.ParseInt(m[i], 10, 48)
			if err != nil {
				return 0 // it is no count of tokens
			}
			return n
		}
		s := PromptSize{number("Prompt"), number("Answer"), number("Limit")}
		if s.Limit > 0 && s.Prompt+s.Answer > s.Limit {
			if s.Prompt > s.Limit {
				s.Answer = 0
			}
			return s
		}
	}
	return PromptSize{}
}

// digitGroups matches the border of two groups of a number that was written with commas.
var digitGroups = regexp.MustCompile(`(\d);(\d{3}\b)`)

// longPromptMessage returns the message about a prompt that does not fit, in words that the programs of the client's
// vendor look for.
func longPromptMessage(message string, s PromptSize, words *dialogue.LongPrompt) string {
	switch {
	case words == nil, containsAny(strings.ToLower(message), words.Known):
		return message
	case s.Answer > 0 && words.WithAnswer != "":
		return fmt.Sprintf(words.WithAnswer, s.Prompt, s.Answer, s.Limit)
	case s.Limit > 0:
		return fmt.Sprintf(words.WithSizes, s.Prompt+s.Answer, s.Limit)
	}
	return words.Phrase + ": " + message
}

// waitInWords finds "try again in 1m26.4s" and "retry after 20 seconds".
var waitInWords = regexp.MustCompile(
	`(?i)\b(?:try again|retry) (?:in|after) (?:about )?` +
		`((?:\d{1,9}(?:\.\d{1,9})?(?:ms|h|m|s))+\b|\d{1,9}(?:\.\d{1,9})? ?(?:second|minute|ms))`)

// waitIn returns the time after which a vendor's message asks to try again, or 0.
func waitIn(message string) time.Duration {
	m := waitInWords.FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	text := strings.NewReplacer(" ", "", "second", "s", "minute", "m").Replace(strings.ToLower(m[1]))
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return clampRetry(d.Seconds())
}
