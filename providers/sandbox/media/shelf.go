package media

import (
	"bytes"
	"crypto/rand"
	"net/http"
	"strings"
	"sync"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
)

// Bounds of a shelf.
const (
	shelfBytes    = 128 << 20
	shelfPictures = 1000
)

// shelf keeps pictures for those who were given their address; the oldest makes
// room for the newest. The zero value is empty.
type shelf struct {
	mu    sync.Mutex
	kept  map[string]keptPicture
	order []string // names, the oldest first
	bytes int
}

type keptPicture struct {
	data      []byte
	mediaType string
	since     time.Time
}

// put keeps a picture and returns its address on the host that r was sent to; ""
// for one that was withheld.
func (s *shelf) put(r *http.Request, img *picture.Image) string {
	if len(img.Data) == 0 {
		return ""
	}
	name := rand.Text() + "." + strings.TrimPrefix(img.MediaType, "image/")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string]keptPicture{}
	}
	for len(s.order) > 0 && (len(s.order) >= shelfPictures || s.bytes+len(img.Data) > shelfBytes) {
		s.bytes -= len(s.kept[s.order[0]].data)
		delete(s.kept, s.order[0])
		s.order = s.order[1:]
	}
	s.kept[name] = keptPicture{data: img.Data, mediaType: img.MediaType, since: time.Now()}
	s.order, s.bytes = append(s.order, name), s.bytes+len(img.Data)
	return "http://" + r.Host + "/sandbox/pictures/" + name
}

func (s *shelf) get(name string) (keptPicture, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.kept[name]
	return p, ok
}

func (s *server) keptPicture(w http.ResponseWriter, r *http.Request) error {
	p, ok := s.shelf.get(r.PathValue("name"))
	if !ok {
		return &dialogue.Error{Status: 404, Type: dialogue.TypeNotFound, Message: "there is no such picture any more"}
	}
	w.Header().Set("Content-Type", p.mediaType)
	http.ServeContent(w, r, "", p.since, bytes.NewReader(p.data))
	return nil
}
