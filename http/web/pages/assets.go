package pages

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed assets
var assetFiles embed.FS

// AssetPrefix is below which Asset serves.
const AssetPrefix = "/assets/"

// asset is a file under a name that tells its content, so that browsers may keep
// it for ever.
type asset struct {
	media string
	data  []byte
	// packed returns data in the format gzip. It is computed for the first browser that wants it. Pages are never
	// compressed: the length of a compressed page would tell an observer whether a text that a link has put into it
	// is like the token of its forms.
	packed func() []byte
}

var assetMedia = map[string]string{".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
	".js": "text/javascript; charset=utf-8"}

// assets returns the served paths of all assets by the names of their files, and their contents by the names under
// which they are served. Such a name has a hash of the content, so that browsers can keep it for ever. Remarks in the
// sources are left out of what is served.
var assets = sync.OnceValues(func() (map[string]string, map[string]asset) {
	paths, all := map[string]string{}, map[string]asset{}
	names, err := fs.Glob(assetFiles, "assets/*")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	// A script that others import comes first, because its served name is part of them.
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(imported(b), imported(a)) })
	for _, name := range names {
		data, err := assetFiles.ReadFile(name)
		if err != nil {
			panic(err) // it is in the program
		}
		base, ext := path.Base(name), path.Ext(name)
		switch ext {
		case ".js":
			data = shortenScript(data, paths)
		case ".css":
			data = shortenStyle(data)
		}
		sum := sha256.Sum256(data)
		served := strings.TrimSuffix(base, ext) + "-" + base64.RawURLEncoding.EncodeToString(sum[:9]) + ext
		packed := sync.OnceValue(func() []byte { return pack(data) })
		paths[base], all[served] = AssetPrefix+served, asset{assetMedia[ext], data, packed}
	}
	return paths, all
})

// Every start of the program shortens all assets, so this is done without regular expressions, which would take most of
// the processor time of a start.

// shortenScript leaves out what a script has only for its readers, which are lines with nothing but a comment and the
// indentation, because no string goes over the end of a line. It names imported scripts by the paths that serve them.
func shortenScript(data []byte, paths map[string]string) []byte {
	short := make([]byte, 0, len(data))
	for line := range bytes.Lines(data) {
		line = bytes.TrimLeft(line, " \t")
		switch {
		case bytes.HasPrefix(line, []byte("//")):
		case bytes.Contains(line, []byte("'./")):
			for base, served := range paths {
				line = bytes.ReplaceAll(line, []byte("from './"+base+"'"), []byte("from '"+served+"'"))
				line = bytes.ReplaceAll(line, []byte("import('./"+base+"')"), []byte("import('"+served+"')"))
			}
			short = append(short, line...)
		default:
			short = append(short, line...)
		}
	}
	return short
}

// punctuation leaves out spaces around punctuation, which no string of a style sheet has. Of several texts that begin
// at a place, it replaces the one that is named first.
var punctuation = strings.NewReplacer("; }", "}", ";}", "}", " }", "}", " { ", "{", " {", "{", "{ ", "{", ": ", ":",
	"; ", ";", ", ", ",")

// shortenStyle leaves out what a style sheet has only for its readers, which are comments, the indentation, and the
// spaces and ends of lines around punctuation.
func shortenStyle(data []byte) []byte {
	var uncommented []byte
	for {
		text, rest, found := bytes.Cut(data, []byte("/*"))
		uncommented = append(uncommented, text...)
		if !found {
			break
		}
		_, data, _ = bytes.Cut(rest, []byte("*/"))
		data = bytes.TrimLeft(data, " \t\n")
	}
	var short []byte
	for line := range bytes.Lines(uncommented) {
		line = bytes.TrimLeft(line, " \t")
		if bytes.HasPrefix(line, []byte("}")) {
			short = bytes.TrimSuffix(bytes.TrimRight(short, "\n"), []byte(";"))
		} else if n := len(short); n > 1 && short[n-1] == '\n' && strings.IndexByte("{};,", short[n-2]) >= 0 {
			short = short[:n-1]
		}
		short = append(short, line...)
	}
	return []byte(punctuation.Replace(string(bytes.TrimRight(short, "\n"))))
}

// imported returns 0 for an asset that no script imports. Of two scripts, one of which imports the other, it returns
// more for the one that is imported.
func imported(name string) int {
	switch path.Base(name) {
	case "back.js", "stream.js", "lanes.js", "kept.js", "shell.js":
		return 2
	case "chatparts.js":
		return 1
	}
	return 0
}

// assetPath returns the path at which an asset is served, for templates.
func assetPath(name string) string {
	paths, _ := assets()
	return paths[name]
}

// Asset serves the file in the path value name. It reports whether there is one;
// if not, nothing is written.
func Asset(w http.ResponseWriter, r *http.Request) bool {
	_, all := assets()
	a, ok := all[r.PathValue("name")]
	if !ok {
		return false
	}
	h := w.Header()
	h.Set("Content-Type", a.media)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Vary", "Accept-Encoding")
	data := a.data
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
		data = a.packed()
	}
	h.Set("Content-Length", strconv.Itoa(len(data)))
	w.Write(data)
	return true
}

// pack returns data compressed with gzip.
func pack(data []byte) []byte {
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level exists
	w.Write(data)                                              // a buffer takes everything
	w.Close()
	return packed.Bytes()
}

// acceptsGzip reports whether a header Accept-Encoding names gzip without a weight. A client that gives weights gets
// the asset as it is, which all clients understand.
func acceptsGzip(header string) bool {
	for name := range strings.SplitSeq(header, ",") {
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			return true
		}
	}
	return false
}
