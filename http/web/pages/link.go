package pages

// ChoosePassword is the page of a one-time link.
type ChoosePassword struct {
	Form
	// First says that the link makes the first administrator, who chooses a username as well.
	First bool
	// Invited says that the link makes another user, who may choose the username.
	Invited  bool
	Username string
	Problem  string
}

func (c *ChoosePassword) frame() frame {
	title := "Choose a password"
	switch {
	case c.First:
		title = "Set up the administrator"
	case c.Invited:
		title = "Create your account"
	}
	return frame{template: "link.html", title: title, leads: toSelf}
}
