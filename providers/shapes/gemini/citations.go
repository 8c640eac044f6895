package gemini

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
)

// maxCitations bounds the sources of one part, because each costs a walk over the text to count
// characters.
const maxCitations = 256

// grounded returns the citations in groundingMetadata, the result of a web search: a list of
// sources, and pieces of text with the indices of the sources that support them. Without such
// pieces it returns all sources.
func grounded(metadata string, text []byte) (out []dialogue.Citation) {
	if metadata == "" {
		return nil
	}
	var sources []dialogue.Citation
	doc := gjson.Parse(metadata)
	if chunks := field(doc, "groundingChunks"); chunks.IsArray() {
		each(chunks, func(_ int, v gjson.Result) bool {
			sources = append(sources, source(v))
			return len(sources) < maxCitations
		})
	}
	supports := field(doc, "groundingSupports")
	if !supports.IsArray() {
		return withAddress(sources)
	}
	each(supports, func(_ int, v gjson.Result) bool {
		segment := field(v, "segment")
		quote := str(field(segment, "text"))
		start, end := segmentSpan(segment, quote, text)
		if indices := field(v, "groundingChunkIndices"); indices.IsArray() {
			each(indices, func(_ int, v gjson.Result) bool {
				if i, ok := integer(v); ok && i >= 0 && i < int64(len(sources)) {
					c := sources[i]
					c.Start, c.End, c.CitedText = start, end, quote
					out = append(out, c)
				}
				return len(out) < maxCitations
			})
		}
		return len(out) < maxCitations
	})
	return withAddress(out)
}

// source returns one source, which is the only member of its object: web, retrievedContext or maps.
func source(chunk gjson.Result) dialogue.Citation {
	c := dialogue.Citation{Origin: Name}
	eachMember(chunk, func(_ string, v gjson.Result) bool { // web, retrievedContext, maps
		c.URL, c.Title = str(field(v, "uri")), str(field(v, "title"))
		return c.URL == ""
	})
	return c
}

// withAddress drops citations without an address, for which no other shape has a form.
func withAddress(list []dialogue.Citation) []dialogue.Citation {
	return slices.DeleteFunc(list, func(c dialogue.Citation) bool { return c.URL == "" })
}

// cited returns the citations in citationMetadata: pieces that the model recited from a source.
func cited(metadata string, text []byte) (out []dialogue.Citation) {
	if metadata == "" {
		return nil
	}
	doc := gjson.Parse(metadata)
	sources := field(doc, "citationSources")
	if !sources.IsArray() {
		sources = field(doc, "citations")
	}
	if !sources.IsArray() {
		return nil
	}
	each(sources, func(_ int, v gjson.Result) bool {
		c := dialogue.Citation{URL: str(field(v, "uri")), Title: str(field(v, "title")), Origin: Name}
		c.Start, c.End = span(v, text)
		out = append(out, c)
		return len(out) < maxCitations
	})
	return withAddress(out)
}

// span returns the start and end of a segment in characters. Google counts bytes. Offsets that are
// not within the text give 0, 0, which means unknown.
func span(v gjson.Result, text []byte) (start, end int) {
	from, _ := integer(field(v, "startIndex"))
	to, ok := integer(field(v, "endIndex"))
	if !ok || from < 0 || to < from || from > int64(len(text)) {
		return 0, 0
	}
	to = min(to, int64(len(text)))
	start = utf8.RuneCount(text[:from])
	return start, start + utf8.RuneCount(text[from:to])
}

// segmentSpan returns the start and end of a grounded segment in characters. The offsets count within the part of the
// content that partIndex names, and text may consist of several parts or be another part. So a segment of a later part
// is looked for by its quote. A quote that is not in text gives 0, 0.
func segmentSpan(segment gjson.Result, quote string, text []byte) (start, end int) {
	start, end = span(segment, text)
	if part, _ := integer(field(segment, "partIndex")); part <= 0 || quote == "" {
		return start, end
	}
	from, to := byteOffset(text, start), byteOffset(text, end)
	if string(text[from:to]) == quote {
		return start, end
	}
	at := bytes.Index(text, []byte(quote))
	if at < 0 {
		return 0, 0
	}
	start = utf8.RuneCount(text[:at])
	return start, start + utf8.RuneCountInString(quote)
}

// reference is a citation and where its part begins in a candidate's text.
type reference struct {
	dialogue.Citation
	base int
}

// writeGrounding writes the member groundingMetadata. text is the whole text of the candidate. Each
// address is listed once, however often it is cited.
func writeGrounding(w *jsonw.Writer, refs []reference, text []byte) {
	if !slices.ContainsFunc(refs, func(r reference) bool { return r.URL != "" }) {
		return
	}
	var urls []string
	place := map[string]int{}
	w.Key("groundingMetadata").Object().Key("groundingChunks").Array()
	for _, r := range refs {
		if _, known := place[r.URL]; known || r.URL == "" {
			continue
		}
		place[r.URL] = len(urls)
		urls = append(urls, r.URL)
		w.Object().Key("web").Object().Key("uri").String(r.URL).Key("title").String(r.Title).End().End()
	}
	w.End().Key("groundingSupports").Array()
	for _, r := range refs {
		if i, known := place[r.URL]; known && r.End > r.Start {
			writeSupport(w, r, text, i)
		}
	}
	w.End().End()
}

// writeSupport writes a piece of the text and the index of the source that supports it.
func writeSupport(w *jsonw.Writer, r reference, text []byte, chunk int) {
	part := text[min(r.base, len(text)):]
	start := byteOffset(part, r.Start)
	end := start + byteOffset(part[start:], r.End-r.Start)
	w.Object().Key("segment").Object()
	w.Key("startIndex").Int(int64(r.base + start)).Key("endIndex").Int(int64(r.base + end))
	w.Key("text").Text(part[start:end]).End()
	w.Key("groundingChunkIndices").Array().Int(int64(chunk)).End().End()
}

// byteOffset returns the index at which the n-th character of text begins.
func byteOffset(text []byte, n int) int {
	at := 0
	for ; n > 0 && at < len(text); n-- {
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return at
}
