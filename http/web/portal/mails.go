package portal

import (
	"fmt"
	"strings"
	"time"

	"stagedoor/http/web/mailer"
	"stagedoor/http/web/pages"
)

// maxMails is the number of mails that a lead has sent in a mailWindow. A lead chooses the addresses, so without a
// bound the gateway would send mails to strangers as fast as a lead can invite them. The links of further ones are
// shown.
const (
	maxMails   = 100
	mailWindow = 24 * time.Hour
)

// letter is a link with the mail that can bring it to its person.
type letter struct {
	link pages.Labelled
	mail mailer.Mail // without an address: the person has none
}

// canMail reports whether mails are sent.
func (p *Portal) canMail() bool { return p.options.Mail.Ready() }

// host returns the gateway's host, as mails name it.
func (p *Portal) host() string {
	_, host, _ := strings.Cut(p.options.Address, "://")
	return host
}

// invitationMail returns the mail with the link of an invitation, which ends at a time.
func (rc *requestContext) invitationMail(to, link string, ends time.Time) mailer.Mail {
	return mailer.Mail{To: to, Subject: "Your invitation to " + rc.host(), Text: fmt.Sprintf(`%s invites you to %s.

Open this link to choose a name and a password:

%s

The link works once, until %s. If you did not expect this mail, you can ignore it.
`, rc.user.Username, rc.options.Address, link, formatEnd(ends))}
}

// resetMail returns the mail with the link with which a user chooses a new password.
func (rc *requestContext) resetMail(to, username, link string, ends time.Time) mailer.Mail {
	return mailer.Mail{To: to, Subject: "Your password at " + rc.host(), Text: fmt.Sprintf(`%s, who administers %s,
made a link with which you, %s, choose a new password:

%s

The link works once, until %s. Your old password works until then. If you did not ask for this mail, ask the
administrator what it is for.
`, rc.user.Username, rc.options.Address, username, link, formatEnd(ends))}
}

// formatEnd returns a time as a mail has it.
func formatEnd(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") }

// deliver mails the links of all people who have an address if the form says so. It returns the links that are to be
// shown, because they were not mailed, and the addresses of the others.
func (rc *requestContext) deliver(all []letter) pages.Sent {
	var sent pages.Sent
	var mails []mailer.Mail
	var mailed []letter
	for _, l := range all {
		wanted := rc.form.Get("mail") == "yes" && rc.canMail() && l.mail.To != ""
		if wanted && !rc.user.Admin && !rc.mails.admit(rc.user.ID, rc.options.Now()) {
			sent.Failed, wanted = true, false
		}
		if !wanted {
			sent.Links = append(sent.Links, l.link)
			continue
		}
		mails, mailed = append(mails, l.mail), append(mailed, l)
	}
	if len(mails) == 0 {
		return sent
	}
	// A link that could not be mailed is shown. It is a secret that nothing keeps, so it would otherwise be lost.
	for i, err := range rc.options.Mail.Send(rc.r.Context(), mails) {
		if err == nil {
			sent.Mailed = append(sent.Mailed, mails[i].To)
			continue
		}
		rc.options.Logger.Warn("a link was not mailed, so it was shown", "by", rc.user.ID, "cause", err)
		sent.Links, sent.Failed = append(sent.Links, mailed[i].link), true
	}
	return sent
}
