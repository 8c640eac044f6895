// Package places says where an address of the internet is, by a file of the operator in the MMDB format, such as
// GeoLite2 City of MaxMind or IP to City Lite of DB-IP. It asks no other service. The gateway has no such file itself,
// because their licences ask for more than a program can do for its operator.
//
// # Concurrency
//
// A File may be used by any goroutine. It is mapped into memory, so a new file has to replace an old one by its name,
// as the programs that fetch them do. The mapping ends when the File is not used any more.
package places

import (
	"errors"
	"net/netip"
	"strings"

	"github.com/oschwald/maxminddb-golang/v2"
)

// File is an open file. A nil File knows no places.
type File struct{ reader *maxminddb.Reader }

// ErrNoPlaces is the error of Open for a file without cities and countries.
var ErrNoPlaces = errors.New("the file has no cities or countries")

// Open opens a file.
func Open(path string) (*File, error) {
	reader, err := maxminddb.Open(path)
	if err != nil {
		return nil, err
	}
	if kind := reader.Metadata.DatabaseType; !strings.Contains(kind, "City") && !strings.Contains(kind, "Country") {
		return nil, errors.Join(ErrNoPlaces, reader.Close())
	}
	return &File{reader}, nil
}

// maxName bounds each part of a place.
const maxName = 60

// Of returns the place of an address in English, such as "Berlin, Germany", or "" if the file has none.
func (f *File) Of(address netip.Addr) string {
	if f == nil || !address.IsValid() {
		return ""
	}
	type name struct {
		Names struct {
			English string `maxminddb:"en"`
		} `maxminddb:"names"`
	}
	var found struct {
		City    name `maxminddb:"city"`
		Country name `maxminddb:"country"`
	}
	if f.reader.Lookup(address.Unmap().WithZone("")).Decode(&found) != nil {
		return "" // the file is damaged there
	}
	var parts []string
	for _, n := range []name{found.City, found.Country} {
		if text := strings.ToValidUTF8(n.Names.English, ""); text != "" {
			parts = append(parts, strings.ToValidUTF8(text[:min(len(text), maxName)], ""))
		}
	}
	return strings.Join(parts, ", ")
}
