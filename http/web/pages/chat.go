package pages

// Chat asks one or two models. Its script sends the requests in the name of the user who is signed in.
type Chat struct {
	Desk
	FormToken string   // with which the script may act for the user
	Address   string   // scheme://host[:port], for code
	Models    []string // to choose from; others can be typed
	Model     string   // that is chosen
}

func (c *Chat) frame() frame {
	f := c.at(placeChat, "chat.html", "Chat")
	f.script, f.style, f.width = "chat.js", "chat.css", full
	return f
}
