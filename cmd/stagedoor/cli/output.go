package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Count returns a number with its noun, which takes an s unless the number is 1.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Table prints a table with aligned columns. head holds the names of the columns, separated by spaces, and is printed
// even if there are no rows. rows calls line once for each row, with at most one cell for each column. Cells of the
// types int, int64 and Amount end at the right edge of their column, and the decimal points of an Amount stand below
// each other. An empty cell is printed as "-". If next is not nil, a last line shows the flag --after that lists the
// page that follows. The error is that of writing to out.
func Table(out io.Writer, head string, next *string, rows func(line func(cells ...any))) error {
	columns := strings.Fields(head)
	table := [][]string{columns}
	numeric, fraction := make([]bool, len(columns)), make([]int, len(columns))
	rows(func(cells ...any) {
		line := make([]string, len(cells))
		for i, cell := range cells {
			if line[i] = Printable(fmt.Sprint(cell)); line[i] == "" {
				line[i] = "-"
			}
			switch amount := cell.(type) {
			case Amount:
				line[i], numeric[i] = Dollars(int64(amount)), true
				fraction[i] = max(fraction[i], len(line[i])-strings.LastIndexByte(line[i], '.'))
			case int, int64:
				numeric[i] = true
			}
		}
		table = append(table, line)
	})
	for i := range columns {
		if numeric[i] {
			alignRight(table, i, fraction[i])
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, line := range table {
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	if err := w.Flush(); err != nil || next == nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nThere is more: --after %s\n", *next)
	return err
}

// alignRight pads one column of a table on the left. fraction is the length of the longest fraction of an amount, with
// its point, and shorter ones are padded on the right up to it.
func alignRight(table [][]string, column, fraction int) {
	widest := 0
	for i, line := range table {
		if point := strings.LastIndexByte(line[column], '.'); i > 0 && point >= 0 {
			line[column] += strings.Repeat(" ", fraction-(len(line[column])-point))
		}
		widest = max(widest, len(line[column]))
	}
	for _, line := range table {
		line[column] = fmt.Sprintf("%*s", widest, line[column])
	}
}

// Printable returns s with a question mark in place of each character that strconv.IsPrint refuses: control and format
// characters, and all spaces but the ASCII one. Text that users chose must not move a terminal's cursor or hide itself.
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

// Set implements pflag.Value. It takes digits with at most six decimals, such as 12.50, after an optional minus sign.
// Other text is an error, which leaves m as it was.
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

// ParseDollars returns an argument in dollars as micro-dollars, by the rules of Amount.Set. The error is ErrUsage.
func ParseDollars(text string) (int64, error) {
	var m Amount
	if err := m.Set(text); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	return int64(m), nil
}

// Dollars returns micro-dollars as dollars with two to six decimals and no dollar sign, such as -0.50 or 0.000001.
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

// Duration is a flag that is a duration such as 90s, 36h or 30d. A day has 24 hours.
type Duration time.Duration

// Set implements pflag.Value.
func (d *Duration) Set(text string) error {
	parsed, err := ParseDuration(text)
	if err != nil {
		return err
	}
	*d = Duration(parsed)
	return nil
}

// ParseDuration returns the duration that a flag or a setting says: 90s, 36h, 30d or 1d12h. A day has 24 hours, and
// there are at most 100,000 of them. Text without days follows time.ParseDuration, so that it may be negative. The rest
// after days must not be. Empty text is an error.
func ParseDuration(text string) (time.Duration, error) {
	wrong := fmt.Errorf("%q is no duration: use for example 30d, 12h or 1d12h", text)
	var whole time.Duration
	rest := text
	if days, after, ok := strings.Cut(text, "d"); ok {
		const day, most = 24 * time.Hour, 100_000
		n, err := strconv.ParseUint(days, 10, 32)
		if err != nil || n > most {
			return 0, wrong
		}
		if whole, rest = time.Duration(n)*day, after; rest == "" {
			return whole, nil
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil || whole > 0 && d < 0 || whole+d < whole && d > 0 {
		return 0, wrong
	}
	return whole + d, nil
}

// String implements pflag.Value.
func (d *Duration) String() string {
	if *d == 0 {
		return "0s"
	}
	return time.Duration(*d).String()
}

// Type implements pflag.Value.
func (d *Duration) Type() string { return "duration" }
