package pages

// ChoosePassword is the page of a one-time link.
type ChoosePassword struct {
	Form
	// First says that the link makes the first administrator, who chooses a username as well.
	First    bool
	Username string
	Problem  string
}

func (c *ChoosePassword) frame() frame {
	title := "Choose a password"
	if c.First {
		title = "Set up the administrator"
	}
	return frame{template: "link.html", title: title, leads: toSelf}
}
