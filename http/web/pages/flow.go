package pages

// Pages of the present load. A script (assets/flow.js) gets it over a socket and draws it; the pages themselves have
// none of it.

// Flow shows the requests in flight, as lanes (assets/lanes.js) and as a table, and those that ended recently.
type Flow struct{ Viewer }

// flowPhases are the phases by which the list of requests can be restricted.
var flowPhases = []string{"starting", "queued", "waiting", "replying", "in_progress", "resting"}

// Phases returns the phases to choose from.
func (*Flow) Phases() []string { return flowPhases }

func (f *Flow) frame() frame { return f.moving(placeFlow, "flow.html", "Flow") }

// FlowRequest shows one request and the spans of its work.
type FlowRequest struct {
	Viewer
	ID   string
	Node string // the gateway, or empty if there are no others
}

func (f *FlowRequest) frame() frame { return f.moving(placeFlow, "flowrequest.html", "Request") }

// Actors shows the tree of actors.
type Actors struct{ Viewer }

func (a *Actors) frame() frame { return a.moving(placeActors, "actors.html", "Actors") }

// moving returns the frame of a page about requests in flight, with the script that keeps it up to date.
func (d *Viewer) moving(here place, template, title string) frame {
	return d.at(here, template, title).with("flow.js", "flow.css", full)
}
