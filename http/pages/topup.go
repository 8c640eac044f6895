package pages

// TopUp shows what an account has and takes redeem codes (decisions, Top-up).
type TopUp struct {
	Form
	Visitor  string   // who is signed in, if anybody
	Username string   // whose account it is; "": not to be shown, as the next
	Figures  *Figures // nil
	Code     string   // as typed before
	Notice   string
	Problem  string
}

// Figures are what an account has, in micro-dollars.
type Figures struct{ Remaining, Spent int64 }

func (t *TopUp) frame() frame {
	return frame{template: "topup.html", title: "Top up", visitor: t.Visitor, leads: here}
}

// Balance is Remaining as text.
func (f *Figures) Balance() string { return Dollars(f.Remaining) }

// Used is Spent as text.
func (f *Figures) Used() string { return Dollars(f.Spent) }
