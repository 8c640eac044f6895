package pages

// Failure says why there is nothing else to see.
type Failure struct {
	Title   string
	Message string
	// Detail is shown as it is, as text: the value that was refused, say.
	Detail string
	// Back leads to the app that sent the browser here; nil: the page has no link.
	Back *Link
}

func (f *Failure) frame() frame {
	return frame{template: "failure.html", title: f.Title, leads: nowhere}
}
