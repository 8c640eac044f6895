package pages

// Search is the page of the search over everything that the user may see. The script of the pages shows the same hits
// in a dialog.
type Search struct {
	Viewer
	Query string
	Hits  []Hit
}

// Hit is something that was found, and the address of its page.
type Hit struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Note string `json:"note,omitempty"`
	Path string `json:"path"`
}

func (s *Search) frame() frame {
	return s.at(placeSearch, "search.html", "Search").with("", "goto.css", "")
}

// Places returns the pages of the side bar, and the lists behind its entries, whose names match.
func (d *Viewer) Places(match func(name string) bool) (hits []Hit) {
	for _, g := range d.nav("") {
		for _, l := range g.Links {
			if match(l.Name) {
				hits = append(hits, Hit{Kind: "Page", Name: l.Name, Note: g.Name, Path: l.Path})
			}
		}
	}
	for _, l := range peoplePages[1:] {
		if d.Admin && match(l.Name) {
			hits = append(hits, Hit{Kind: "Page", Name: l.Name, Note: nameRun, Path: l.Path})
		}
	}
	return hits
}
