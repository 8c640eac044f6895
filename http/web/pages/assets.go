package pages

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
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
}

var assetMedia = map[string]string{".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
	".js": "text/javascript; charset=utf-8"}

// assetPaths maps a file to where it is served, assets what is served to the
// files.
var assetPaths, assets = loadAssets()

func loadAssets() (map[string]string, map[string]asset) {
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
		for base, served := range paths {
			data = bytes.ReplaceAll(data, []byte("from './"+base+"'"), []byte("from '"+served+"'"))
		}
		sum := sha256.Sum256(data)
		base, ext := path.Base(name), path.Ext(name)
		served := strings.TrimSuffix(base, ext) + "-" + base64.RawURLEncoding.EncodeToString(sum[:9]) + ext
		paths[base], all[served] = AssetPrefix+served, asset{assetMedia[ext], data}
	}
	return paths, all
}

// imported returns 1 for a script that others import, and 0 for every other asset.
func imported(name string) int {
	switch path.Base(name) {
	case "stream.js", "lanes.js":
		return 1
	}
	return 0
}

// assetPath is for the templates.
func assetPath(name string) string { return assetPaths[name] }

// Asset serves the file in the path value name. It reports whether there is one;
// if not, nothing is written.
func Asset(w http.ResponseWriter, r *http.Request) bool {
	a, ok := assets[r.PathValue("name")]
	if !ok {
		return false
	}
	h := w.Header()
	h.Set("Content-Type", a.media)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	w.Write(a.data)
	return true
}
