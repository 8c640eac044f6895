package pages

// Form holds the data of every form besides its fields.
type Form struct {
	Action string
	ID     string // what it is about: a transaction, a requestContext
	Token  string // that it was drawn for this browser
}

// App is an app as the people hear of it that it wants something from.
type App struct {
	Name        string
	Description string
	Host        string // where the browser goes afterwards
	Loopback    bool   // that is this computer, without TLS
	Scopes      []string
}

func (a *App) leads() leads {
	if a.Loopback {
		return toPrograms
	}
	return toApps
}

// SignIn asks for credentials. With an app it names the app, where it is and what
// it asks for.
type SignIn struct {
	Form
	App *App
	// Consents: there is no further page, signing in is the yes (decisions,
	// auto_authorize).
	Consents bool
	Username string // as typed before
	// Halfway is the sealed login whose code the form asks for in place of the password; "": it asks for the password.
	Halfway string
	Next    string // where to go on, without an app
	Notice  string
	Problem string
}

func (s *SignIn) frame() frame {
	f := frame{template: "signin.html", title: "Sign in", leads: toSelf}
	if s.App != nil {
		f.leads = s.App.leads()
	}
	return f
}

// Consent asks whether an app may have what it asks for.
type Consent struct {
	Form
	App      App
	Username string
}

func (c *Consent) frame() frame {
	return frame{template: "consent.html", title: "Allow access", visitor: c.Username, leads: c.App.leads()}
}
