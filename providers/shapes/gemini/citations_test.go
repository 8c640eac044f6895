package gemini

import "testing"

func TestASegmentOfALaterPartIsFoundByItsQuote(t *testing.T) {
	const text = "Größe. It rained."
	for _, tt := range []struct {
		name, segment string
		start, end    int
	}{
		{"first part", `{"startIndex":0,"endIndex":8,"text":"Größe."}`, 0, 6},
		{"the part is the text", `{"partIndex":1,"startIndex":0,"endIndex":8,"text":"Größe."}`, 0, 6},
		{"the text joins parts", `{"partIndex":1,"startIndex":0,"endIndex":10,"text":"It rained."}`, 7, 17},
		{"another part", `{"partIndex":1,"startIndex":0,"endIndex":5,"text":"Other"}`, 0, 0},
		{"no quote", `{"partIndex":1,"startIndex":0,"endIndex":8}`, 0, 6},
	} {
		metadata := `{"groundingChunks":[{"web":{"uri":"https://e.org"}}],"groundingSupports":[{"segment":` +
			tt.segment + `,"groundingChunkIndices":[0]}]}`
		found := grounded(metadata, []byte(text))
		if len(found) != 1 || found[0].Start != tt.start || found[0].End != tt.end {
			t.Errorf("%s: got %+v, want %d to %d", tt.name, found, tt.start, tt.end)
		}
	}
}
