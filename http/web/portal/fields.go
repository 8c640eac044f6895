package portal

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
)

// fields reads a form. The first field that cannot be read is err.
type fields struct {
	form url.Values
	err  error
}

// fail records the first mistake of a form. A page shows one problem at a time.
func (f *fields) fail(label, rule string) {
	if f.err == nil {
		f.err = &tokens.FieldError{Field: label, Rule: rule}
	}
}

// text returns what was typed into a field, without white space around it.
func (f *fields) text(name string) string { return strings.TrimSpace(f.form.Get(name)) }

// list reads words with commas or spaces between; nil if there are none.
func (f *fields) list(name string) []string {
	words := strings.FieldsFunc(f.form.Get(name),
		func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' || r == '\t' })
	if len(words) == 0 {
		return nil
	}
	return words
}

// networks reads addresses and networks; nil if there are none.
func (f *fields) networks(name, label string) []netip.Prefix {
	networks, err := identity.ParseNetworks(f.list(name))
	if err != nil {
		f.fail(label, "must be addresses or networks like 192.0.2.1 and 2001:db8::/32")
		return nil
	}
	return networks
}

// whole reads a number; an empty field is 0.
func (f *fields) whole(name, label string) int64 {
	text := f.text(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		f.fail(label, "must be a whole number")
		return 0
	}
	return n
}

// dollars reads an amount in micro-dollars; an empty field is 0.
func (f *fields) dollars(name, label string) int64 {
	n, ok := parseDollars(f.text(name))
	if !ok {
		f.fail(label, "must be an amount in dollars like 12.50")
	}
	return n
}

// parseDollars reads decimal dollars, with up to six decimals, as micro-dollars.
func parseDollars(text string) (micros int64, ok bool) {
	const decimals = 6
	digits, negative := strings.CutPrefix(text, "-")
	if text == "" {
		return 0, true
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	if len(whole)+len(fraction) == 0 || len(fraction) > decimals {
		return 0, false
	}
	n, err := strconv.ParseUint(whole+fraction+strings.Repeat("0", decimals-len(fraction)), 10, 63)
	if err != nil || n > budget.MaxCredits {
		return 0, false
	}
	if negative {
		return -int64(n), true
	}
	return int64(n), true
}

// lastDay reads a day, as the moment after it; an empty field is never.
func (f *fields) lastDay(name, label string) time.Time {
	text := f.text(name)
	if text == "" {
		return time.Time{}
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		f.fail(label, "must be a day like 2026-12-31")
		return time.Time{}
	}
	return day.AddDate(0, 0, 1)
}
