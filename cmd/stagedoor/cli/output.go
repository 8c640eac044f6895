package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Count returns a number with its noun, which takes an s unless the number is 1.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Table prints a table with aligned columns. head holds the names of the columns, separated by spaces. rows calls
// line once for each row. An empty cell is printed as "-". If next is not nil, the last line tells the reader how to
// list the page that follows.
func Table(out io.Writer, head string, next *string, rows func(line func(cells ...any))) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(strings.Fields(head), "\t"))
	rows(func(cells ...any) {
		for i, cell := range cells {
			if i > 0 {
				io.WriteString(w, "\t")
			}
			if text := fmt.Sprint(cell); text != "" {
				io.WriteString(w, Printable(text))
			} else {
				io.WriteString(w, "-")
			}
		}
		io.WriteString(w, "\n")
	})
	if err := w.Flush(); err != nil || next == nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nThere is more: --after %s\n", *next)
	return err
}

// Printable replaces control characters, because text that users chose must not move a terminal's cursor.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// Shorten cuts text to at most a number of characters and marks the cut with an ellipsis.
func Shorten(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}

// Amount is a flag in dollars that is kept in micro-dollars. It never passes through a floating-point number.
type Amount int64

const micro = 1_000_000

// Set implements pflag.Value.
func (m *Amount) Set(text string) error {
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	const decimals = "000000"
	noDigit := func(r rune) bool { return r < '0' || r > '9' }
	if whole == "" || len(fraction) > len(decimals) || strings.ContainsFunc(whole+fraction, noDigit) {
		return fmt.Errorf("%q is no amount: use dollars with at most six decimals, such as 12.50", text)
	}
	n, err := strconv.ParseInt(whole+fraction+decimals[len(fraction):], 10, 64)
	if err != nil {
		return fmt.Errorf("%q is too much", text)
	}
	if strings.HasPrefix(text, "-") {
		n = -n
	}
	*m = Amount(n)
	return nil
}

// String implements pflag.Value.
func (m *Amount) String() string { return Dollars(int64(*m)) }

// Type implements pflag.Value.
func (m *Amount) Type() string { return "dollars" }

// ParseDollars returns an argument in dollars as micro-dollars. The error is a usage error.
func ParseDollars(text string) (int64, error) {
	var m Amount
	if err := m.Set(text); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	return int64(m), nil
}

// Dollars writes micro-dollars with two to six decimals.
func Dollars(micros int64) string {
	sign := ""
	if micros < 0 {
		sign, micros = "-", -micros
	}
	fraction := strings.TrimRight(fmt.Sprintf("%06d", micros%micro), "0")
	for len(fraction) < 2 {
		fraction += "0"
	}
	return fmt.Sprintf("%s%d.%s", sign, micros/micro, fraction)
}
