package chat

import (
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/providers/fields"
)

// detail is an entry of reasoning_details that goes back to the upstream. Text and summaries stream in pieces, which
// the upstream wants back as one entry:
//
//	{"type":"reasoning.text","text":"Look ","index":0}
//	{"type":"reasoning.text","text":"it up.","index":0}
//	{"type":"reasoning.text","signature":"EqQB...","index":0}
type detail struct {
	first     gjson.Result // the first piece
	member    string       // that grows, or "" for an entry that comes whole
	signature string       // JSON of the signature in a later piece
	text      strings.Builder
	pieces    int
	fragments fields.FragmentJoiner
}

// growing are the types of entries that come in pieces, with the member that grows.
var growing = map[string]string{"reasoning.text": "text", "reasoning.summary": "summary"}

// newDetail returns the entry that begins with v. It keeps a copy of v, whose memory belongs to the event.
func newDetail(v gjson.Result) *detail {
	v = gjson.Parse(strings.Clone(v.Raw))
	d := &detail{first: v, member: growing[v.Get("type").Str]}
	d.add(v)
	return d
}

// join adds v to the entry and returns true if v is a piece of it. A signature is the last piece of an entry.
func (d *detail) join(v gjson.Result) bool {
	if d.member == "" || d.signature != "" || v.Get("type").Str != d.first.Get("type").Str ||
		v.Get("index").Raw != d.first.Get("index").Raw {
		return false
	}
	d.add(v)
	return true
}

// add adds a piece.
func (d *detail) add(v gjson.Result) {
	d.pieces++
	if d.member != "" {
		d.text.WriteString(d.fragments.Add(v.Get(d.member)))
	}
	if s := v.Get("signature"); s.Type == gjson.String {
		d.signature = strings.Clone(s.Raw)
	}
}

// raw returns the JSON of the whole entry.
func (d *detail) raw() string {
	if d.pieces == 1 {
		return d.first.Raw
	}
	whole, err := sjson.Set(d.first.Raw, d.member, d.text.String()+d.fragments.Rest())
	if err == nil && d.signature != "" {
		whole, err = sjson.SetRaw(whole, "signature", d.signature)
	}
	if err != nil {
		return d.first.Raw
	}
	return whole
}

// joinedDetails returns the JSON of the whole list.
func joinedDetails(list []*detail) string {
	raw := make([]string, len(list))
	for i, d := range list {
		raw[i] = d.raw()
	}
	return "[" + strings.Join(raw, ",") + "]"
}
