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
