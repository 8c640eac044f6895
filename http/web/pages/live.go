package pages

// Live shows video jobs while they are made. A script (assets/live.js) fills and moves
// it. The script asks the gateway for the jobs of the signed-in user, or of a key that
// was typed; the page itself knows none of them.
type Live struct {
	// Viewer is nil for a visitor who is not signed in and types a key.
	Viewer *Viewer
	// Token lets the script act for the signed-in user; "" without one.
	Token string
	Maker
}

// The sizes, and the lengths in seconds, that the page offers (wire/videos.md 2). A model may accept fewer of them; the
// gateway then answers with an error.
var (
	liveFrames = []Frame{{"1280x720", "wide", true}, {"720x1280", "tall", false}, {"1792x1024", "wide, large", true},
		{"1024x1792", "tall, large", false}}
	liveSeconds = []string{"4", "8", "12"}
)

// Frame is a size of videos to choose, with its name.
type Frame struct {
	Size, Name string
	Wide       bool
}

// Frames returns the sizes to choose from.
func (*Live) Frames() []Frame { return liveFrames }

// Seconds returns the lengths to choose from.
func (*Live) Seconds() []string { return liveSeconds }

// frame returns the frame of the page, which has the side bar only for a signed-in user.
func (l *Live) frame() frame {
	f := frame{
		template: "live.html",
		title:    "Videos",
		leads:    nowhere,
		width:    "wide",
		script:   "live.js",
		style:    "media.css",
	}
	if l.Viewer != nil {
		f.viewer, f.here, f.leads, f.width = l.Viewer, placeLive, toSelf, ""
	}
	return f
}
