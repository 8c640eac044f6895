package dialogue_test

import (
	"testing"

	"stagedoor/providers/dialogue"
)

// TestADataURLInBase64IsItsTypeAndContents: in any case, with white space beside its parts and with further parameters,
// as browsers read one. Everything else stays an address.
func TestADataURLInBase64IsItsTypeAndContents(t *testing.T) {
	for url, want := range map[string]dialogue.Media{
		"data:image/png;base64,AAAA":               {MIME: "image/png", Base64: "AAAA"},
		"DATA:Image/PNG;Base64,AAAA":               {MIME: "image/png", Base64: "AAAA"},
		"data:image/png; base64,AAAA":              {MIME: "image/png", Base64: "AAAA"},
		"data: image/png ;\tbase64 ,AAAA":          {MIME: "image/png", Base64: "AAAA"},
		"data:image/svg+xml;charset=utf-8;base64,": {MIME: "image/svg+xml"},
		"data:;base64,AAAA":                        {Base64: "AAAA"},
		"data:text/plain;base64,A,A":               {MIME: "text/plain", Base64: "A,A"},
		"data:text/plain;base64;charset=utf-8,AA":  {URL: "data:text/plain;base64;charset=utf-8,AA"},
		"data:text/plain,AAAA":                     {URL: "data:text/plain,AAAA"},
		"data:base64,AAAA":                         {URL: "data:base64,AAAA"},
		"data:image/png;base64":                    {URL: "data:image/png;base64"},
		"https://a.example/x;base64,AAAA":          {URL: "https://a.example/x;base64,AAAA"},
		"dat":                                      {URL: "dat"},
		"":                                         {},
	} {
		var m dialogue.Media
		if m.SetURL(url); m != want {
			t.Errorf("%q is %+v, want %+v", url, m, want)
		}
	}
}
