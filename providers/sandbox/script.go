package sandbox

import (
	"math"
	"strconv"
	"strings"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/sandbox/job"
)

// Header is the name of the header that requests faults for one request.
const Header = "X-Sandbox"

// Pace is a number of tokens per second. Zero stands for DefaultPace.
type Pace float64

const (
	DefaultPace Pace = 50
	MaxPace     Pace = math.MaxFloat64 // does not wait
)

// Fault is a failure after a number of tokens.
type Fault uint8

// Faults in the middle of a reply.
const (
	NoFault Fault = iota
	Cut           // the connection breaks
	Stall         // nothing is sent any more
	Garbage       // bytes that are not of the shape are sent
	Failure       // the shape's error event is sent
)

// Script describes the delivery of a reply. Its zero value has no faults and the default pace.
type Script struct {
	Delay      time.Duration
	Pace       Pace
	Tokens     int // length of the text; 0: chosen at random
	Status     int // of a refusal; 0: none
	RetryAfter time.Duration
	Fault      Fault
	After      int // tokens before Fault
	Drip       bool
	Refuse     bool

	// Of pictures and videos.
	Block  bool // moderation refuses the request
	Unsafe bool // pictures are withheld
	Job    job.Faults

	// origin is the shape of the upstream that the simulator stands for, and proof the form in
	// which such upstreams vouch for thinking.
	origin dialogue.Shape
	proof  dialogue.Proof
}

const (
	// faultAfter is the number of tokens before a fault that names none. endAt is the progress of a
	// job in percent at which it ends, if the directive names none. The others bound values of
	// directives.
	faultAfter = 4
	mostTokens = 1_000_000
	mostDelay  = time.Hour
	mostPolls  = 255
	endAt      = 50 // percent of a job's progress
)

// ParseScript applies the header's value and the words in the last user text to base.
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

// read applies directives such as "delay=2s, cut=10". An unknown one is an error, because a test
// with a misspelled fault would pass for the wrong reason.
func (s *Script) read(words string) error {
	separator := func(r rune) bool { return r == ',' || r == ';' || r == ' ' || r == '\t' || r == '\n' }
	for word := range strings.FieldsFuncSeq(words, separator) {
		name, value, _ := strings.Cut(word, "=")
		apply, known := directives[strings.ToLower(name)]
		if !known || !apply(s, value) {
			return dialogue.Invalid(strings.ToLower(Header), "has the unknown directive "+strconv.Quote(word))
		}
	}
	return nil
}

// directives has a function for each word, which reports whether the value is valid.
var directives = map[string]func(s *Script, value string) bool{
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

// duration sets a time and reports whether it is valid.
func duration(to *time.Duration, v string) bool {
	d, err := time.ParseDuration(v)
	*to = d
	return err == nil && d >= 0 && d <= mostDelay
}

// count sets a number and reports whether it is within its bounds.
func count(to *int, v string, least, most int) bool {
	n, err := strconv.Atoi(v)
	*to = n
	return err == nil && n >= least && n <= most
}

// setPace sets the tokens per second. "max" does not wait at all.
func (s *Script) setPace(v string) bool {
	if v == "max" {
		s.Pace = MaxPace
		return true
	}
	f, err := strconv.ParseFloat(v, 64)
	s.Pace = Pace(f)
	return err == nil && f > 0 && f <= mostTokens
}

// fail sets a fault and after how many tokens it comes.
func (s *Script) fail(f Fault, v string) bool {
	s.Fault, s.After = f, faultAfter
	return v == "" || count(&s.After, v, 0, mostTokens)
}

// end sets how a job ends, and at which percentage of its progress.
func (s *Script) end(e job.Ending, v string) bool {
	s.Job.Ending, s.Job.At = e, endAt
	return v == "" || count(&s.Job.At, v, 0, 100)
}

// block refuses a request at once or, with a value, ends its job later.
func (s *Script) block(v string) bool {
	if v != "" {
		return s.end(job.Blocked, v)
	}
	s.Block = true
	return true
}

// refusal returns the error of Status.
func (s *Script) refusal() *dialogue.Error {
	kind := map[int]string{401: dialogue.TypeAuthentication, 403: dialogue.TypePermission, 404: dialogue.TypeNotFound,
		408: dialogue.TypeTimeout, 413: dialogue.TypeTooLarge, 429: dialogue.TypeRateLimit,
		503: dialogue.TypeOverloaded,
		504: dialogue.TypeTimeout, 529: dialogue.TypeOverloaded}[s.Status]
	if kind == "" {
		kind = dialogue.TypeInvalidRequest
		if s.Status >= 500 {
			kind = dialogue.TypeAPI
		}
	}
	e := dialogue.Reported(s.Status, kind, "sandbox_"+strconv.Itoa(s.Status), "the sandbox refuses as requested")
	e.RetryAfter = s.RetryAfter
	return e
}
