package pages

// First is the page at / while there is no user. It says what the gateway is, gives its address and first key, answers
// a question and shows how clients are connected.
type First struct {
	Address string   // scheme://host[:port], as the browser reached it
	Key     string   // the first key; "" if the visitor may not see it
	Models  []string // to ask
	Clients []ClientSetting
	// Form asks without a script. Question and Answer are what came of it, Problem is why nothing did.
	Form                      Form
	Question, Answer, Problem string
	Model                     string // that was asked
}

func (f *First) frame() frame {
	return frame{template: "first.html", title: "Your gateway", leads: toSelf, width: "first", script: "first.js",
		style: "first.css"}
}
