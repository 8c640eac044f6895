// Package sizes makes texts whose size is their only difficulty, and measures
// what reading them costs. Fuzzing with small inputs cannot find that a walk is
// quadratic or that a value is copied ten times. The package is for tests.
//
// # Usage
//
// Check reads each Form with each Subject, at a size and at eight times that size, and fails the test if one takes more
// time or memory than its size is worth (Cost.Within). With the larger size a quadratic step costs 64 times as much,
// which stands out from the noise of the machine. Generated texts are computed and not stored, so that they can be of
// any size.
package sizes

import (
	"flag"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A Form is a way for a text to be large.
type Form struct {
	Name string
	// JSON makes one JSON value of about n bytes, or what claims to be one.
	JSON func(n int) string
}

// Forms are values that are deep, wide or long, or repeat something.
var Forms = []Form{
	{"deep arrays", func(n int) string { return strings.Repeat("[", n/2) + strings.Repeat("]", n/2) }},
	{"deep objects", func(n int) string { return strings.Repeat(`{"a":`, n/6) + "1" + strings.Repeat("}", n/6) }},
	{"open brackets", func(n int) string { return strings.Repeat("[", n) }},
	{"deep within the limit", func(n int) string {
		one := strings.Repeat(`[`, 100) + strings.Repeat("]", 100)
		return list(n, func(int) string { return one })
	}},
	{"many names", func(n int) string { return object(n/14, `"n%09d":0`) }},
	{"many names within the limit", func(n int) string {
		one := object(9_000, `"n%d":0`)
		return list(n, func(int) string { return one })
	}},
	{"small objects", func(n int) string {
		return list(n, func(i int) string { return fmt.Sprintf(`{"type":"x%d","a":{}}`, i) })
	}},
	{"numbers", func(n int) string { return list(n, func(int) string { return "0" }) }},
	{"strings", func(n int) string { return list(n, func(i int) string { return fmt.Sprintf(`"s%d"`, i) }) }},
	{"a long string", func(n int) string { return `"` + strings.Repeat("x", n) + `"` }},
	{"a long string of escapes", func(n int) string { return `"` + strings.Repeat(`\u00e9\"`, n/8) + `"` }},
	{"a long string beyond ASCII", func(n int) string { return `"` + strings.Repeat("\u4f60", n/3) + `"` }},
	{"blanks in a string", func(n int) string { return `"` + strings.Repeat(" ", n) + `"` }},
	{"a long number", func(n int) string { return strings.Repeat("1", n) }},
	{"a long fraction", func(n int) string { return "0." + strings.Repeat("1", n) }},
	{"a long name", func(n int) string { return `{"` + strings.Repeat("n", n) + `":0}` }},
	{"long names", func(n int) string {
		return `{"` + strings.Repeat("n", n/2) + `a":0,"` + strings.Repeat("n", n/2) + `b":0}`
	}},
	{"white space", func(n int) string { return strings.Repeat(" ", n) + "0" }},
	{"brackets in a string", func(n int) string { return `"` + strings.Repeat("[", n) + `"` }},
	{"an object in a string", func(n int) string {
		return `"{` + strings.TrimSuffix(strings.Repeat(`\"a\":0,`, n/8), ",") + `}"`
	}},
	{"a string in a string in a string", nestedStrings},
}

func list(n int, item func(i int) string) string {
	var b strings.Builder
	b.WriteByte('[')
	for i := 0; b.Len() < n; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(item(i))
	}
	return b.String() + "]"
}

func object(names int, format string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, format, i)
	}
	return b.String() + "}"
}

// nestedStrings quotes an object again and again; each time its backslashes double.
func nestedStrings(n int) string {
	text := `{"a":"b"}`
	for len(text) < n/2 {
		text = strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), `"`, `\"`)
		text = `{"a":"` + text + `"}`
	}
	return text
}

// A Cost is what one call took.
type Cost struct {
	CPU  time.Duration // of the whole process, garbage collection included
	Peak int64         // bytes of live objects above what was there before
}

// Within reports whether a text of n bytes may cost that much, if the program has counted so
// many bytes before it reads it. Time has a second more than PerMiB allows, because other tests
// of the process count as well.
func (c Cost) Within(n int, counted int64) bool {
	most := Spare + max(Factor*int64(n), int64(n)+counted)
	return c.Peak <= most && c.CPU <= allowed(n)
}

// allowed is the processor time that a text of n bytes may take. The second is for the other goroutines of the process.
func allowed(n int) time.Duration {
	return time.Second + PerMiB*time.Duration(n)/(1<<20)
}

// Measure performs f once. The heap may grow by about 4 MiB between two collections in the first attempt, because
// collections take most of the time, and by 1 MiB in later ones, so that less garbage counts as memory.
func Measure(attempt int, f func()) Cost {
	runtime.GC()
	before := live()
	garbage, most := int64(4<<20), int64(100)
	if attempt > 0 {
		garbage, most = 1<<20, 20
	}
	defer debug.SetGCPercent(debug.SetGCPercent(int(max(1, min(most, 100*garbage/max(before, 1))))))
	peak := watch()
	start := cpu()
	f()
	return Cost{CPU: cpu() - start, Peak: max(peak()-before, 0)}
}

// watch looks at the heap until it is asked for the most that there was.
func watch() (peak func() int64) {
	var most int64
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				most = max(most, live())
			}
		}
	})
	return func() int64 {
		close(stop)
		done.Wait()
		return max(most, live())
	}
}

// live is the size of the objects on the heap, with the garbage since the latest collection.
func live() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// cpu is the processor time that the process has used. It does not depend on what
// else runs on the machine.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Limits of the property that Check tests.
const (
	Factor = 6       // bytes of memory for each byte of input,
	Spare  = 8 << 20 // and these
	// Growth limits the factor in time for eight times the input. Linear work
	// takes 8 times as long, quadratic work 64 times.
	Growth = 28
	// Unit is too short to be distinguished from noise.
	Unit = 10 * time.Millisecond
	// PerMiB is the time that a MiB of input may take, beside a second for all of it.
	PerMiB = 2 * time.Second
)

// only restricts Check to some names and forms: "chat, .*names".
var only = flag.String("sizes.only", "", "measure the subjects and forms whose \"name, form\" this expression matches")

// A Row is the worst that was found for one handler or parser.
type Row struct {
	Name       string
	Memory     float64 // bytes for each byte of input, beyond Spare
	MemoryForm string
	PerMiB     time.Duration
	Growth     float64
	PerMiBForm string
	GrowthForm string
}

// A Subject is a handler or a parser that reads texts.
type Subject struct {
	Name string
	// Input makes an input that holds value.
	Input func(value string) string
	// Read reads it. What it answers does not matter here.
	Read func(input string)
	// Counted returns the bytes that the program counts against its memory before it reads
	// the input. It may use these, too, where they are more than Factor allows; nil: none.
	Counted func(input string) int64
	// Forms are those that it is read with; nil: Forms of the package, the few that
	// find most if the size is not above Short.
	Forms []Form
}

// Short is the smaller of the two sizes in the suite.
const Short = 32 << 10

// few are the forms that find most, for the suite.
func few() []Form {
	var list []Form
	for _, f := range Forms {
		switch f.Name {
		case "open brackets", "many names", "small objects", "numbers", "a long string", "an object in a string":
			list = append(list, f)
		}
	}
	return list
}

// Items is the form of an array of these items, of at most MostItems.
func Items(name string, item func(i int) string) Form {
	return Form{name, func(n int) string { return list(min(n, MostItems*len(item(0))), item) }}
}

// MostItems is as many messages as the messages shape allows. It has no request of more.
const MostItems = 100_000

// share returns an eighth of the forms for the i-th subject if tests are to be short, and another eighth for the next
// one. Each subject is read with one form at least.
func share(forms []Form, i int) []Form {
	if !testing.Short() || *only != "" {
		return forms
	}
	every := min(8, len(forms))
	var list []Form
	for j, form := range forms {
		if j%every == i%every {
			list = append(list, form)
		}
	}
	return list
}

// Check reads every form with every subject, at size n and at 8 n, and fails the
// test where time or memory is more than the property allows. It returns the worst
// of each name. With -short it reads an eighth of them.
func Check(t *testing.T, n int, subjects []Subject) []Row {
	t.Helper()
	wanted := regexp.MustCompile(*only)
	rows := map[string]*Row{}
	var order []*Row
	for i, s := range subjects {
		row := rows[s.Name]
		if row == nil {
			row = &Row{Name: s.Name}
			rows[s.Name], order = row, append(order, row)
		}
		s.Read(s.Input(`"x"`)) // what is made once
		forms := s.Forms
		switch {
		case forms != nil:
		case n <= Short:
			forms = few()
		default:
			forms = Forms
		}
		for _, form := range share(forms, i) {
			if wanted.MatchString(s.Name + ", " + form.Name) {
				row.measure(t, n, s, form)
			}
		}
	}
	out := make([]Row, 0, len(order))
	for _, r := range order {
		out = append(out, *r)
	}
	return out
}

// factor returns how many bytes the subject may take for each byte of input.
func (s *Subject) factor(input string) float64 {
	if s.Counted == nil {
		return Factor
	}
	return max(Factor, float64(int64(len(input))+s.Counted(input))/float64(len(input)))
}

func (r *Row) measure(t *testing.T, n int, s Subject, form Form) {
	t.Helper()
	small, large := s.Input(form.JSON(n)), s.Input(form.JSON(8*n))
	var memory, growth, perMiB float64
	slow := false
	factor := s.factor(large)
	for attempt := range 3 { // a busy machine disturbs one measurement, seldom three
		b := Measure(attempt, func() { s.Read(large) })
		base := Unit
		if b.CPU > Growth*Unit { // else it is fine, whatever the small input takes
			base = max(base, Measure(attempt, func() { s.Read(small) }).CPU)
		}
		m := float64(b.Peak-Spare) / float64(len(large))
		g := float64(b.CPU) / float64(base)
		p := float64(b.CPU) / (float64(len(large)) / (1 << 20))
		if attempt == 0 {
			memory, growth, perMiB = m, g, p
		}
		memory, growth, perMiB = min(memory, m), min(growth, g), min(perMiB, p)
		slow = b.CPU > allowed(len(large))
		if memory <= factor && growth <= Growth && !slow {
			break
		}
	}
	if memory > factor || growth > Growth || slow {
		t.Errorf(
			"%s, %s, %d bytes: %.1f bytes of memory for each byte, %.1f times the time for 8 times the input, %v "+
				"for each MiB",
			s.Name,
			form.Name,
			len(large),
			memory,
			growth,
			time.Duration(perMiB).Round(time.Millisecond),
		)
	}
	if memory > r.Memory {
		r.Memory, r.MemoryForm = memory, form.Name
	}
	if growth > r.Growth {
		r.Growth, r.GrowthForm = growth, form.Name
	}
	if d := time.Duration(perMiB); d > r.PerMiB {
		r.PerMiB, r.PerMiBForm = d, form.Name
	}
}

// Table shows rows with -v.
func Table(t *testing.T, rows []Row) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"\n| what | worst memory | of | worst time for a MiB | of | time for 8 times the input | of "+
			"|\n|---|---|---|---|---|---|---|\n",
	)
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %.1f x | %s | %v | %s | %.1f x | %s |\n", r.Name, r.Memory, r.MemoryForm,
			r.PerMiB.Round(100*time.Microsecond), r.PerMiBForm, r.Growth, r.GrowthForm)
	}
	t.Log(b.String())
}
