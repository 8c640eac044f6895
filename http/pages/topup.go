package pages

// TopUp shows what an account has and takes redeem codes (decisions, Top-up).
type TopUp struct {
	Form
	Desk     *Desk    // of who is signed in, if anybody
	Username string   // whose account it is; "": not to be shown, as the next
	Figures  *Figures // nil
	Code     string   // as typed before
	Notice   string
	Problem  string
}

// Figures are what an account has, in micro-dollars.
type Figures struct{ Remaining, Spent int64 }

func (t *TopUp) frame() frame {
	if t.Desk == nil {
		return frame{template: "topup.html", title: "Top up", leads: toSelf}
	}
	f := t.Desk.at(placeTopUp, "topup.html", "Top up")
	f.wide = false
	return f
}

// Balance is Remaining as text.
func (f *Figures) Balance() string { return Dollars(f.Remaining) }

// Used is Spent as text.
func (f *Figures) Used() string { return Dollars(f.Spent) }
