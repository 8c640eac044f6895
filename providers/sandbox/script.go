package sandbox

import (
	"math"
	"strconv"
	"strings"
	"time"

	"stagedoor/providers/dialogue"
)

// Header orders faults for one request.
const Header = "X-Sandbox"

// Pace is tokens per second; zero is the default.
type Pace float64

const (
	// DefaultPace is brisk enough to watch and slow enough to see streaming.
	DefaultPace Pace = 50
	// MaxPace does not wait at all.
	MaxPace Pace = math.MaxFloat64
)

// Fault is something that goes wrong after a number of tokens.
type Fault uint8

// Faults in the middle of a reply.
const (
	NoFault Fault = iota
	Cut           // the connection breaks
	Stall         // nothing comes any more
	Garbage       // something comes that is not of the shape
	Failure       // the shape's error event
)

// Script says how a reply is delivered. Its zero value is a reply without
// faults at the default pace.
type Script struct {
	Delay      time.Duration
	Pace       Pace
	Tokens     int // length of the text; 0: as the text has it
	Status     int // refuse with this status; 0: do not
	RetryAfter time.Duration
	Fault      Fault
	After      int // tokens before Fault
	Drip       bool
	Refuse     bool

	signAs dialogue.Shape // sign thinking as an upstream of this shape does
}

const (
	faultAfter = 4
	mostTokens = 1_000_000
	mostDelay  = time.Hour
)

// ParseScript reads the header's value and the words in the last user text on
// top of base.
func ParseScript(base Script, header, text string) (Script, error) {
	if err := base.read(header); err != nil {
		return base, err
	}
	_, rest, found := strings.Cut(text, "[sandbox:")
	if !found {
		return base, nil
	}
	words, _, _ := strings.Cut(rest, "]")
	return base, base.read(words)
}

func (s *Script) read(words string) error {
	separator := func(r rune) bool { return r == ',' || r == ';' || r == ' ' || r == '\t' || r == '\n' }
	for word := range strings.FieldsFuncSeq(words, separator) {
		name, value, _ := strings.Cut(word, "=")
		order, known := orders[strings.ToLower(name)]
		if !known || !order(s, value) {
			return dialogue.Invalid(strings.ToLower(Header), "does not understand "+strconv.Quote(word))
		}
	}
	return nil
}

// orders carry out one word each and report whether they understood its value.
var orders = map[string]func(s *Script, value string) bool{
	"delay":       func(s *Script, v string) bool { return duration(&s.Delay, v) },
	"retry-after": func(s *Script, v string) bool { return duration(&s.RetryAfter, v) },
	"pace":        (*Script).setPace,
	"tokens":      func(s *Script, v string) bool { return count(&s.Tokens, v, 1, mostTokens) },
	"status":      func(s *Script, v string) bool { return count(&s.Status, v, 400, 599) },
	"cut":         func(s *Script, v string) bool { return s.fail(Cut, v) },
	"stall":       func(s *Script, v string) bool { return s.fail(Stall, v) },
	"garbage":     func(s *Script, v string) bool { return s.fail(Garbage, v) },
	"error":       func(s *Script, v string) bool { return s.fail(Failure, v) },
	"drip":        func(s *Script, v string) bool { s.Drip = true; return v == "" },
	"refuse":      func(s *Script, v string) bool { s.Refuse = true; return v == "" },
}

func duration(to *time.Duration, v string) bool {
	d, err := time.ParseDuration(v)
	*to = d
	return err == nil && d >= 0 && d <= mostDelay
}

func count(to *int, v string, least, most int) bool {
	n, err := strconv.Atoi(v)
	*to = n
	return err == nil && n >= least && n <= most
}

func (s *Script) setPace(v string) bool {
	if v == "max" {
		s.Pace = MaxPace
		return true
	}
	f, err := strconv.ParseFloat(v, 64)
	s.Pace = Pace(f)
	return err == nil && f > 0 && f <= mostTokens
}

func (s *Script) fail(f Fault, v string) bool {
	s.Fault, s.After = f, faultAfter
	return v == "" || count(&s.After, v, 0, mostTokens)
}

// refusal is the error of a Status.
func (s *Script) refusal() *dialogue.Error {
	return &dialogue.Error{Status: s.Status, Type: refusalType(s.Status), Code: "sandbox_" + strconv.Itoa(s.Status),
		Message: "the sandbox refuses as it was told to", RetryAfter: s.RetryAfter}
}

func refusalType(status int) string {
	switch {
	case status == 401:
		return dialogue.TypeAuthentication
	case status == 403:
		return dialogue.TypePermission
	case status == 404:
		return dialogue.TypeNotFound
	case status == 413:
		return dialogue.TypeTooLarge
	case status == 429:
		return dialogue.TypeRateLimit
	case status == 529 || status == 503:
		return dialogue.TypeOverloaded
	case status == 408 || status == 504:
		return dialogue.TypeTimeout
	case status >= 500:
		return dialogue.TypeAPI
	}
	return dialogue.TypeInvalidRequest
}
