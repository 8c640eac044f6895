package pages

// Chat asks one or two models. Its script sends the requests in the name of the user who is signed in.
type Chat struct {
	Viewer
	FormToken string     // with which the script may act for the user
	Address   string     // scheme://host[:port], for code
	Models    []ModelRow // to choose from; others can be typed
	Model     string     // that is chosen
	Available int64      // micro-dollars that the account can spend
}

func (c *Chat) frame() frame {
	return c.at(placeChat, "chat.html", "Chat").with("chat.js", "chat.css", full)
}

// Images makes pictures and edits them. Its script does so in the name of the user who is signed in, and keeps them.
type Images struct {
	Viewer
	Maker
	FormToken string // with which the script may act for the user
}

// Maker is the form with which images and videos are made.
type Maker struct {
	Models []ModelRow // to choose from; others can be typed
	Model  string     // that is chosen
}

// Choices returns the models that have a button of their own.
func (m *Maker) Choices() []ModelRow { return m.Models[:min(len(m.Models), 6)] }

func (i *Images) frame() frame {
	return i.at(placeImages, "images.html", "Images").with("images.js", "media.css", "")
}
