package pages

import "strconv"

// microDollars in a dollar, and the decimals that makes.
const (
	microDollars = 1_000_000
	decimals     = 6
)

// Dollars writes micro-dollars as dollars with two to six decimals (decisions,
// balance_formatted).
func Dollars(micros int64) string {
	sign, whole := "", uint64(micros)
	if micros < 0 {
		sign, whole = "-", -whole
	}
	fraction := strconv.FormatUint(microDollars+whole%microDollars, 10)[1:]
	end := decimals
	for end > 2 && fraction[end-1] == '0' {
		end--
	}
	return sign + strconv.FormatUint(whole/microDollars, 10) + "." + fraction[:end]
}

// cent is the smallest amount that pages show with two decimals.
const cent = microDollars / 100

// formatMoney writes micro-dollars as pages show them: with two decimals from one cent up, and below with as many as
// two significant figures take, at most four. Pages name the exact amount in a title.
func formatMoney(micros int64) string {
	abs := micros
	if abs < 0 {
		abs = -abs
	}
	unit := int64(cent)
	if abs < cent {
		unit = cent / 100
	}
	rounded := (abs + unit/2) / unit * unit
	if rounded == 0 && abs > 0 {
		return "<$0.0001"
	}
	text := "$" + Dollars(rounded)
	if micros < 0 {
		return "−" + text
	}
	return text
}
