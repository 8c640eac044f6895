package dialogue

import "strings"

// SetURL sets the address of m or, for a data URL in base64, its type and contents. Any other data
// URL stays an address, because its contents are not base64 and upstreams may still read it. The
// scheme and the word base64 count in any case (RFC 2397). The base64 is not decoded.
func (m *Media) SetURL(url string) {
	const scheme = "data:"
	m.URL = url
	if len(url) < len(scheme) || !strings.EqualFold(url[:len(scheme)], scheme) {
		return
	}
	head, data, ok := strings.Cut(url[len(scheme):], ",")
	mime, parameters, _ := strings.Cut(head, ";")
	last := parameters[strings.LastIndexByte(parameters, ';')+1:]
	if !ok || !strings.EqualFold(strings.TrimSpace(last), "base64") {
		return
	}
	m.URL, m.MIME, m.Base64 = "", strings.ToLower(strings.TrimSpace(mime)), data
}
