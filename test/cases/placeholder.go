package cases

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
)

// The placeholders in texts; the package comment describes them.
var (
	genMark   = regexp.MustCompile(`\{\{gen:b64:(\d+)\}\}`)
	upMark    = regexp.MustCompile(`\{\{up:([^}|]*)(?:\|([^}]*))?\}\}`)
	upKeyMark = regexp.MustCompile(`\{\{upkey:([^}|]*)(?:\|([^}]*))?\}\}`)
)

// generate replaces {{gen:b64:N}} by base64 of N zero bytes.
func generate(text []byte) []byte {
	return genMark.ReplaceAllFunc(text, func(mark []byte) []byte {
		n, err := strconv.Atoi(string(genMark.FindSubmatch(mark)[1]))
		if err != nil {
			return mark
		}
		return []byte(base64.StdEncoding.EncodeToString(make([]byte, n)))
	})
}

// quote replaces what an answer quotes from the request just received: {{up:/ptr}} a value, {{upkey:/ptr}}
// the first member name of an object. A quoted text is written as the inside of a JSON string, so that it can
// stand in an answer between quotes.
func quote(text []byte, request json.RawMessage) []byte {
	text = upKeyMark.ReplaceAllFunc(text, func(mark []byte) []byte {
		m := upKeyMark.FindSubmatch(mark)
		if fields, err := fieldsOf(rawPointer(request, string(m[1]))); err == nil && len(fields) > 0 {
			return []byte(fields[0].name)
		}
		return m[2]
	})
	doc, err := parse(request)
	if err != nil {
		doc = missing
	}
	return upMark.ReplaceAllFunc(text, func(mark []byte) []byte {
		m := upMark.FindSubmatch(mark)
		switch v := pointer(doc, string(m[1])).(type) {
		case string:
			quoted := compact(v)
			return []byte(quoted[1 : len(quoted)-1])
		case json.Number:
			return []byte(v)
		}
		return m[2]
	})
}

// A field is a member of an object in the order of the text. A map would lose the order, in which some
// upstreams expect members.
type field struct {
	name  string
	value json.RawMessage
}

// fieldsOf splits an object without losing the order of its members.
func fieldsOf(raw json.RawMessage) ([]field, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("not an object: %.80s", raw)
	}
	var out []field
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		f := field{name: name.(string)} // a member starts with its name, or Token fails
		if err := d.Decode(&f.value); err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// rawPointer is pointer on text, for what must keep its order.
func rawPointer(raw json.RawMessage, ptr string) json.RawMessage {
	for _, token := range tokens(ptr) {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) == nil {
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(list) {
				return nil
			}
			raw = list[i]
			continue
		}
		fields, err := fieldsOf(raw)
		raw = nil
		for _, f := range fields {
			if err == nil && f.name == token {
				raw = f.value
			}
		}
	}
	return raw
}

// echo replaces in a follow-up request what the client repeats of the previous
// reply: {"$client": ptr} a value, {"$client_splice": ptr} the elements of an array
// in place, {"$client_strip": {ptr, drop}} a value without some members.
func echo(raw json.RawMessage, previous any) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	switch {
	case !bytes.Contains(raw, []byte(`"$client`)):
		return raw, nil
	case raw[0] == '[':
		return echoList(raw, previous)
	case raw[0] == '{':
		return echoObject(raw, previous)
	}
	return raw, nil
}

// echoList fills in the placeholders of a list. A splice puts several elements of the previous reply in place of one.
func echoList(raw json.RawMessage, previous any) (json.RawMessage, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	var out [][]byte
	for _, x := range list {
		if ptr, ok := reference(x, "$client_splice"); ok {
			elements, isList := pointer(previous, ptr).(array)
			if !isList {
				return nil, fmt.Errorf("nothing to splice at %s of the previous reply", ptr)
			}
			for _, e := range elements {
				out = append(out, []byte(compact(e)))
			}
			continue
		}
		e, err := echo(x, previous)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return enclose('[', out, ']'), nil
}

// echoObject fills in the placeholders of an object. Fields stay in their order, because some upstreams read in
// order.
func echoObject(raw json.RawMessage, previous any) (json.RawMessage, error) {
	if ptr, ok := reference(raw, "$client"); ok {
		v := pointer(previous, ptr)
		if v == any(missing) {
			return nil, fmt.Errorf("nothing at %s of the previous reply", ptr)
		}
		return json.RawMessage(compact(v)), nil
	}
	fields, err := fieldsOf(raw)
	if err != nil {
		return nil, err
	}
	if len(fields) == 1 && fields[0].name == "$client_strip" {
		return strip(fields[0].value, previous)
	}
	var out [][]byte
	for _, f := range fields {
		v, err := echo(f.value, previous)
		if err != nil {
			return nil, err
		}
		out = append(out, append([]byte(compact(f.name)+":"), v...))
	}
	return enclose('{', out, '}'), nil
}

// reference reads {name: "/ptr"}.
func reference(raw json.RawMessage, name string) (ptr string, ok bool) {
	fields, err := fieldsOf(raw)
	if err != nil || len(fields) != 1 || fields[0].name != name {
		return "", false
	}
	return ptr, json.Unmarshal(fields[0].value, &ptr) == nil
}

// strip returns a value of the previous reply without some members, of each element
// if it is a list.
func strip(raw json.RawMessage, previous any) (json.RawMessage, error) {
	var order struct {
		Ptr  string
		Drop []string
	}
	if err := json.Unmarshal(raw, &order); err != nil {
		return nil, err
	}
	v := clone(pointer(previous, order.Ptr))
	items, ok := v.(array)
	if !ok {
		items = array{v}
	}
	for _, item := range items {
		for _, k := range order.Drop {
			delete(asObject(item), k)
		}
	}
	return json.RawMessage(compact(v)), nil
}

// enclose joins items between brackets.
func enclose(open byte, items [][]byte, end byte) []byte {
	out := append([]byte{open}, bytes.Join(items, []byte(","))...)
	return append(out, end)
}
