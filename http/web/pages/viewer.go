package pages

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"stagedoor/http/web/browser"
)

// Viewer is the signed-in user who looks at a page, and what the frame of the page shows beside its content. Every page
// behind sign-in embeds one.
type Viewer struct {
	Username string
	Admin    bool
	Leads    bool // leads a group
	// HasPassword is not set for a user who signs in at a provider only. Forms ask such a user for no password.
	HasPassword bool
	// Token goes into every form of the page: it was drawn for this session.
	Token string
	// TopUp is the address of the page that adds money.
	TopUp string
	// Notice says what was just done, Problem why it was not.
	Notice  string
	Problem string
	// Mistakes are those of the configuration file on disk, for administrators.
	Mistakes []string
	// Videos in progress are those of the user, and InFlight are the requests of all users, for administrators. The
	// side bar shows both counts.
	Videos, InFlight int64
	// Left is the amount that the user can spend, in micro-dollars.
	Left int64
}

// OwnTopUp is the address of the gateway's own top-up page for the signed-in user.
const OwnTopUp = "/topup?account=own"

// ViewerPurpose is the purpose of the form token that pages behind sign-in share.
const ViewerPurpose = "viewer"

// NewViewer returns what the frame of a page shows a signed-in user. topUp is the operator's own address for adding
// money, or "" for the gateway's page. mistakes are those of the configuration file, which only an administrator's page
// shows.
func NewViewer(g *browser.Guard, v *browser.Visitor, topUp string, mistakes []string) Viewer {
	if !v.Session.User.Admin {
		mistakes = nil
	}
	return Viewer{
		Username: v.Session.User.Username,
		Admin:    v.Session.User.Admin,
		Leads:    v.Session.User.Leads,

		HasPassword: v.Session.User.HasPassword,
		Token:       g.FormToken(v, ViewerPurpose),
		TopUp:       cmp.Or(topUp, OwnTopUp),
		Mistakes:    mistakes,
	}
}

// place is the address of an entry of the side bar.
type place string

const (
	placeAccount  place = "/account"
	placeSearch   place = "/search"
	placeKeys     place = "/account/keys"
	placeUsage    place = "/account/usage"
	placeApps     place = "/account/apps"
	placeTokens   place = "/account/tokens"
	placeSecurity place = "/account/security"
	placeLed      place = PathLed
	placeLedKeys  place = PathLed + "/keys"
	placeLedSpend place = PathLed + "/spend"
	placeLedLog   place = pathRequests + "?of=group"
	placeTopUp    place = "/topup"
	placeLive     place = "/live"
	placeConnect  place = "/connect"
	placeChat     place = "/chat"
	placeImages   place = "/images"
	placeModels   place = "/account/models"

	placeUsers     place = "/admin/users"
	placeSpend     place = "/admin/spend"
	placeCodes     place = "/admin/codes"
	placeAudit     place = PathAudit
	placeFlow      place = "/flow"
	placeRequests  place = "/requests"
	placeProviders place = "/flow/providers"
	placeActors    place = "/flow/actors"
)

// Link is a link, in a navigation or beside a text.
type Link struct {
	Name    string
	Path    string
	Current bool
}

// linkGroup is a titled part of the side bar.
type linkGroup struct {
	Name  string
	Links []iconLink
}

// iconLink is a link with an icon.
type iconLink struct {
	Link
	Icon string // in templates/icons.html
	// Count is shown behind the name if it is not 0, and CountText says what it counts.
	Count     int64
	CountText string
}

// navEntry is an entry of the navigation.
type navEntry struct {
	place      place
	name, icon string
}

// navGroups are the parts of the side bar. Only leads see the last but one, and only administrators the last one.
var navGroups = []struct {
	name    string
	entries []navEntry
}{
	{"Use", []navEntry{{placeChat, "Chat", "chat"}, {placeImages, "Images", "image"},
		{placeLive, "Videos", "video"}, {placeModels, "Models", "model"}}},
	{
		"Account",
		[]navEntry{{placeAccount, "Overview", "chart"}, {placeKeys, "Keys", "key"}, {placeUsage, "Usage", "coins"},
			{placeRequests, "Requests", "list"}, {placeTopUp, "Top up", "card"},
			{placeSecurity, "Security", "shield"}},
	},
	{
		"Build",
		[]navEntry{{placeConnect, "Connect", "plug"}, {placeApps, "My apps", "apps"},
			{placeTokens, "Tokens", "ticket"}},
	},
	{
		nameLed,
		[]navEntry{{placeLed, "Members", "users"}, {placeLedKeys, "Keys of members", "key"},
			{placeLedLog, "Requests of all", "list"}, {placeLedSpend, "Spend of all", "coins"}},
	},
	{
		nameRun,
		[]navEntry{{placeFlow, "Flow", "flow"}, {placeRequests, "Requests", "list"},
			{placeProviders, "Providers", "server"}, {placeUsers, "Users and groups", "users"},
			{placeSpend, "Spend", "coins"},
			{placeCodes, "Codes", "code"}, {placeAudit, "Audit", "history"}, {placeActors, "Actors", "tree"}},
	},
}

// peoplePages are the lists behind the entry Users and groups of the side bar.
var peoplePages = []Link{{Name: "Users", Path: string(placeUsers)}, {Name: "Groups", Path: "/admin/groups"},
	{Name: "All keys", Path: "/admin/keys"}}

// people returns the links between the lists of people, at the one of a name.
func people(name string) []Link {
	links := slices.Clone(peoplePages)
	for i := range links {
		links[i].Current = links[i].Name == name
	}
	return links
}

// Names of the parts of the side bar that only some users see.
const (
	nameRun = "Run"
	nameLed = "Group"
)

// nav returns the side bar as the user sees it from here.
func (d *Viewer) nav(here place) []linkGroup {
	var all []linkGroup
	for _, g := range navGroups {
		if g.name == nameRun && !d.Admin || g.name == nameLed && !d.Leads {
			continue
		}
		group := linkGroup{Name: g.name}
		for _, e := range g.entries {
			if e.place == placeRequests && d.Admin && g.name != nameRun {
				continue // administrators see all requests, below
			}
			link := iconLink{Link: Link{e.name, string(e.place), e.place == here}, Icon: e.icon}
			switch e.place {
			case placeTopUp:
				link.Path = d.TopUp
			case placeLive:
				link.Count, link.CountText = d.Videos, "in progress"
			case placeFlow:
				link.Count, link.CountText = d.InFlight, "in flight"
			}
			group.Links = append(group.Links, link)
		}
		all = append(all, group)
	}
	return all
}

// Initials returns up to two letters that stand for the user's name.
func (d *Viewer) Initials() string { return initials(d.Username) }

// initials returns the first two letters of a name in upper case.
func initials(name string) string {
	letters := []rune(strings.ToUpper(name))
	return string(letters[:min(len(letters), 2)])
}

// at returns the frame of a page behind sign-in.
func (d *Viewer) at(here place, template, title string) frame {
	return frame{template: template, title: title, viewer: d, here: here, leads: toSelf}
}

// formatDay returns the day of t. All formats of times are of UTC, and say so where they show the hour.
func formatDay(t time.Time) string { return t.UTC().Format("2 Jan 2006") }

// formatLastDay returns the day that contains the moment before t, which is the last day of a time that ends at t.
func formatLastDay(t time.Time) string { return formatDay(t.Add(-time.Nanosecond)) }

// formatTime returns a time to the minute, for people.
func formatTime(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04 UTC") }

// formatMachine returns a time in the form of the attribute datetime.
func formatMachine(t time.Time) string { return t.UTC().Format(time.RFC3339) }
