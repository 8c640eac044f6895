package sandbox

import (
	"math"
	"strconv"
	"strings"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/sandbox/job"
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

	// Of pictures and videos.
	Block  bool // moderation refuses the request
	Unsafe bool // pictures are made and withheld
	Job    job.Faults

	signAs dialogue.Shape // sign thinking as an upstream of this shape does
}

const (
	faultAfter = 4
	mostTokens = 1_000_000
	mostDelay  = time.Hour
	mostPolls  = 255
	endAt      = 50 // percent of a job's progress
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

	"block":         (*Script).block,
	"unsafe":        func(s *Script, v string) bool { s.Unsafe = true; return v == "" },
	"job":           func(s *Script, v string) bool { return duration(&s.Job.Time, v) && s.Job.Time > 0 },
	"expire":        func(s *Script, v string) bool { return duration(&s.Job.Keep, v) && s.Job.Keep >= time.Second },
	"fail":          func(s *Script, v string) bool { return s.end(job.Fails, v) },
	"freeze":        func(s *Script, v string) bool { return s.end(job.Freezes, v) },
	"vanish":        func(s *Script, v string) bool { return s.end(job.Vanishes, v) },
	"busy-polls":    func(s *Script, v string) bool { return count(&s.Job.BusyPolls, v, 0, mostPolls) },
	"cut-polls":     func(s *Script, v string) bool { return count(&s.Job.CutPolls, v, 0, mostPolls) },
	"cut-downloads": func(s *Script, v string) bool { return count(&s.Job.CutDownloads, v, 0, mostPolls) },
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

// end orders how a job ends, and at which percentage of its progress.
func (s *Script) end(e job.Ending, v string) bool {
	s.Job.Ending, s.Job.At = e, endAt
	return v == "" || count(&s.Job.At, v, 0, 100)
}

// block refuses a request at once, or ends its job later.
func (s *Script) block(v string) bool {
	if v != "" {
		return s.end(job.Blocked, v)
	}
	s.Block = true
	return true
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
