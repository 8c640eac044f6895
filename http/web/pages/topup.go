package pages

// TopUp shows what an account has and takes redeem codes (decisions, Top-up).
type TopUp struct {
	Form
	Viewer   *Viewer // of the signed-in user; nil without one
	Username string  // whose account is credited
	// SignedInAs is set if the user who is signed in is another one. The form then asks
	// for a confirmation.
	SignedInAs string
	Figures    Figures
	Code       string // as typed before
	Notice     string
	Problem    string
}

// Figures hold an account's balance and spending in micro-dollars.
type Figures struct{ Remaining, Spent int64 }

func (t *TopUp) frame() frame {
	if t.Viewer == nil {
		return frame{template: "topup.html", title: "Top up", leads: toSelf}
	}
	return t.Viewer.at(placeTopUp, "topup.html", "Top up").with("", "", slim)
}

// OwnPath returns the address at which the signed-in user tops up their own account.
func (t *TopUp) OwnPath() string { return t.Viewer.TopUp }
