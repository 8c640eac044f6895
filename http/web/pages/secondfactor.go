package pages

import (
	"fmt"
	"net/url"
	"strings"

	"rsc.io/qr"

	"stagedoor/actors/tokens"
)

// SecondFactor is the page on which a user sets up codes of an authenticator app.
type SecondFactor struct {
	Form
	Username string
	Secret   string // as people type it
	Picture  QR     // of the same for cameras
	// Required says that the user can do nothing else before.
	Required bool
	// HasPassword says that the form asks for the password.
	HasPassword bool
	Problem     string
}

func (s *SecondFactor) frame() frame {
	return frame{template: "secondfactor.html", title: "Set up a second factor", visitor: s.Username, leads: toSelf}
}

// NewSecondFactor returns the page for a user of the gateway at host.
func NewSecondFactor(host, username string, secret []byte) (*SecondFactor, error) {
	text := tokens.EncodeSecret(secret)
	uri := url.URL{Scheme: "otpauth", Host: "totp", Path: "/" + host + ":" + username,
		RawQuery: url.Values{"secret": {text}, "issuer": {host}}.Encode()}
	picture, err := drawQR(uri.String())
	var groups []string
	for ; len(text) > 4; text = text[4:] {
		groups = append(groups, text[:4])
	}
	return &SecondFactor{Username: username, Secret: strings.Join(append(groups, text), " "), Picture: picture}, err
}

// QR is a QR code as the path of an SVG of Size by Size squares.
type QR struct {
	Size int
	Path string
}

// drawQR returns the QR code of a text, with the margin that readers need.
func drawQR(text string) (QR, error) {
	const margin = 4
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return QR{}, err
	}
	var path strings.Builder
	for y := range code.Size {
		for x := range code.Size {
			if code.Black(x, y) {
				fmt.Fprintf(&path, "M%d %dh1v1h-1z", x+margin, y+margin)
			}
		}
	}
	return QR{Size: code.Size + 2*margin, Path: path.String()}, nil
}

// SecretRecovery shows the recovery codes of a second factor.
func SecretRecovery(d Viewer, codes []string) *Secret {
	return &Secret{Viewer: d, Title: "Your recovery codes", Secrets: codes, Back: string(placeSecurity),
		place: placeSecurity, Message: "Each code signs you in once, in place of a code of your device. Keep them " +
			"where you find them without the device: they are not shown again. Earlier ones do not work any more."}
}
