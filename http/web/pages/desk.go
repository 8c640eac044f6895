package pages

import (
	"cmp"
	"time"

	"stagedoor/http/web/browser"
)

// Desk is what the frame of a page says of who is signed in: every page behind
// sign-in embeds one.
type Desk struct {
	Username string
	Admin    bool
	// Token goes into every form of the page: it was drawn for this session.
	Token string
	// TopUp is where money is added.
	TopUp string
	// Notice says what was just done, Problem why it was not.
	Notice  string
	Problem string
}

// OwnTopUp is the gateway's own top-up page, for whoever is signed in.
const OwnTopUp = "/topup?account=own"

// DeskPurpose is the purpose of a desk's form token.
const DeskPurpose = "desk"

// NewDesk is the desk of who is signed in. topUp is the operator's own address
// for adding money, "": there is none.
func NewDesk(g *browser.Guard, v *browser.Visitor, topUp string) Desk {
	return Desk{Username: v.Session.User.Username, Admin: v.Session.User.Admin, Token: g.FormToken(v, DeskPurpose), TopUp: cmp.Or(topUp, OwnTopUp)}
}

// place is where a page stands in the navigation.
type place string

// The places. Those of administration have a navigation of their own.
const (
	placeAccount  place = "/account"
	placeKeys     place = "/account/keys"
	placeApps     place = "/account/apps"
	placeTokens   place = "/account/tokens"
	placeSecurity place = "/account/security"
	placeTopUp    place = "/topup"
	placeLive     place = "/live"
	placeAdmin    place = "/admin"

	placeUsers     place = "/admin/users"
	placeGroups    place = "/admin/groups"
	placeAdminKeys place = "/admin/keys"
	placeSpend     place = "/admin/spend"
	placeCodes     place = "/admin/codes"
	placeFlow      place = "/flow"
	placeProviders place = "/flow/providers"
	placeActors    place = "/flow/actors"
)

// Link is an entry of a navigation.
type Link struct {
	Name    string
	Path    string
	Current bool
}

var sections = []struct {
	place place
	name  string
}{
	{placeAccount, "Account"}, {placeLive, "Videos"}, {placeKeys, "Keys"}, {placeApps, "Apps"}, {placeSecurity, "Security"},
	{placeTokens, "Developer tokens"}, {placeTopUp, "Top up"}, {placeAdmin, "Admin"},
}

var offices = []struct {
	place place
	name  string
}{{placeUsers, "Users"}, {placeGroups, "Groups"}, {placeAdminKeys, "Keys"}, {placeSpend, "Spend"}, {placeCodes, "Redeem codes"},
	{placeFlow, "Flow"}, {placeProviders, "Providers"}, {placeActors, "Actors"}}

// nav is the main navigation as seen from here.
func (d *Desk) nav(here place) []Link {
	var all []Link
	for _, s := range sections {
		link := Link{s.name, string(s.place), s.place == here}
		switch s.place {
		case placeAdmin:
			if !d.Admin {
				continue
			}
			link.Path, link.Current = string(placeUsers), administers(here)
		case placeTopUp:
			link.Path = d.TopUp
		}
		all = append(all, link)
	}
	return all
}

// parts is the second navigation, if there is one.
func parts(here place) []Link {
	if !administers(here) {
		return nil
	}
	var all []Link
	for _, s := range offices {
		all = append(all, Link{s.name, string(s.place), s.place == here})
	}
	return all
}

func administers(here place) bool {
	for _, s := range offices {
		if s.place == here {
			return true
		}
	}
	return false
}

// at is the frame of a page behind sign-in.
func (d *Desk) at(here place, template, title string) frame {
	return frame{template: template, title: title, desk: d, here: here, leads: toSelf, wide: true}
}

// Formats of times. All are of UTC, and say so where the hour is shown.
func formatDay(t time.Time) string { return t.UTC().Format("2 Jan 2006") }

// formatLastDay is the last day that is not wholly after t.
func formatLastDay(t time.Time) string { return formatDay(t.Add(-time.Nanosecond)) }

func formatTime(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04 UTC") }

func formatMachine(t time.Time) string { return t.UTC().Format(time.RFC3339) }
