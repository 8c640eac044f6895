package imagegen

import (
	"math"
	"slices"
	"strings"

	"stagedoor/providers/picture"
)

// The closed lists of the documents.
var (
	models       = []string{"V_1", "V_1_TURBO", "V_2", "V_2_TURBO", "V_2A", "V_2A_TURBO"}
	editModels   = []string{"V_2", "V_2_TURBO"}
	magicPrompts = []string{"AUTO", "ON", "OFF"}
	stylesV2     = []string{"AUTO", "GENERAL", "REALISTIC", "DESIGN", "RENDER_3D", "ANIME"}
	// The documents list the first four. The vendor also takes the others.
	stylesV3       = []string{"AUTO", "GENERAL", "REALISTIC", "DESIGN", "FICTION", "CUSTOM", "STYLIZED"}
	speeds         = []string{"TURBO", "DEFAULT", "QUALITY"}
	describeModels = []string{"V_2", "V_3"}
	magicVersions  = []string{"V_0", "V_0_1", "V_0_2", "V_0_3", "V_0_4", "V_0_5", "V_0_6", "V_0_7", "V_0_8"}
)

// The aspect ratios of each generation, as picture.ParseAspect reads them.
var (
	aspectsV2 = []string{"1x1", "3x1", "1x3", "3x2", "2x3", "4x3", "3x4", "16x9", "9x16", "10x16", "16x10"}
	aspectsV3 = []string{
		"1x3", "3x1", "1x2", "2x1", "9x16", "16x9", "10x16", "16x10", "2x3", "3x2", "3x4", "4x3", "4x5", "5x4", "1x1",
	}
)

// misspelt is the documents' spelling of ASPECT_16_10. The gateway
// takes both spellings and sends the vendor the correct one.
const misspelt = "SPECT_16_10"

// aspectV2 reads ASPECT_16_9.
func aspectV2(word string) (picture.Aspect, bool) {
	if word == misspelt {
		word = "A" + word
	}
	pair, ok := readPair(word, "ASPECT_")
	if !ok || !slices.Contains(aspectsV2, pair) {
		return picture.Aspect{}, false
	}
	return picture.ParseAspect(pair)
}

// readPair returns a pair of numbers such as 16_9, which stands behind prefix in word, as 16x9.
func readPair(word, prefix string) (pair string, ok bool) {
	rest, found := strings.CutPrefix(word, prefix)
	width, height, two := strings.Cut(rest, "_")
	return width + "x" + height, found && two
}

// aspectV3 reads 16x9.
func aspectV3(word string) (picture.Aspect, bool) {
	if !slices.Contains(aspectsV3, word) {
		return picture.Aspect{}, false
	}
	return picture.ParseAspect(word)
}

// Resolutions that the vendor takes, as portraits and squares. The vendor takes the same ones as landscapes.
// portraitsV2 has only those that version 2.0 takes in addition to portraitsV3; see takesV2.
const (
	portraitsV3 = " 512x1536 576x1408 576x1472 576x1536 640x1344 640x1408 640x1472 640x1536 704x1152 704x1216 704x1280 704x1344 704x1408 704x1472" +
		" 736x1312 768x1088 768x1216 768x1280 768x1344 800x1280 832x960 832x1024 832x1088 832x1152 832x1216 832x1248 864x1152 896x960 896x1024" +
		" 896x1088 896x1120 896x1152 960x1024 960x1088 1024x1024 "
	portraitsV2 = " 640x1024 720x1280 768x1024 768x1152 768x1232 "
)

// takesV3 reports whether the third generation makes pictures of this size.
func takesV3(s picture.Size) bool {
	return strings.Contains(portraitsV3, " "+upright(s).String()+" ")
}

// takesV2 reports whether version 2.0 makes pictures of this size. It takes the sizes of the third generation, except
// 800x1280 (though not 1280x800), and some more.
func takesV2(s picture.Size) bool {
	return strings.Contains(portraitsV2, " "+upright(s).String()+" ") ||
		takesV3(s) && s != (picture.Size{Width: 800, Height: 1280})
}

// upright returns the size as a portrait, because the lists have each pair of edges once.
func upright(s picture.Size) picture.Size {
	if s.Width > s.Height {
		return picture.Size{Width: s.Height, Height: s.Width}
	}
	return s
}

// Bounds of an edge. The vendor checks the pairs.
const (
	leastEdge = 64
	mostEdge  = 4096
)

// resolution reads 1024x768 or RESOLUTION_1024_768.
func resolution(word string) (picture.Size, bool) {
	if pair, ok := readPair(word, "RESOLUTION_"); ok {
		word = pair
	}
	s, ok := picture.ParseSize(word)
	return s, ok && min(s.Width, s.Height) >= leastEdge && max(s.Width, s.Height) <= mostEdge
}

// resolutionV2 returns the vendor's spelling of a resolution for version 2.0.
func resolutionV2(s picture.Size) string {
	return "RESOLUTION_" + strings.Replace(s.String(), "x", "_", 1)
}

// formatAspectV2 writes ASPECT_16_9.
func formatAspectV2(a picture.Aspect) string {
	return "ASPECT_" + strings.Replace(formatAspectV3(a), "x", "_", 1)
}

// formatAspectV3 writes 16x9.
func formatAspectV3(a picture.Aspect) string { return picture.Size(a).String() }

// nearest returns the ratio of a list that is nearest to width divided by height.
func nearest(list []string, width, height int) picture.Aspect {
	var best picture.Aspect
	least := math.Inf(1)
	for _, word := range list {
		a, _ := picture.ParseAspect(word)
		off := math.Abs(math.Log(float64(width) / float64(height) * float64(a.Height) / float64(a.Width)))
		if off < least {
			best, least = a, off
		}
	}
	return best
}
