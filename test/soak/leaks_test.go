package soak

import (
	"os"
	"path/filepath"
	"regexp"
)

// secretForm matches every secret of this run: tokens, keys and redeem
// codes as the gateway makes them, the users' password and the operator's token.
var secretForm = regexp.MustCompile(
	`\b(?:ac|at|rt|as|se|dt)_[A-Za-z0-9_-]{43,}|\bsd-[A-Za-z0-9]{43}|\b(?:[A-Z0-9]{4}-){5}[A-Z0-9]{4}\b|` + password +
		`|` + adminToken,
)

// findLeaks adds a fault to the report if a text contains a secret. The line names the kind of secret by its prefix and
// does not repeat it.
func (s *soak) findLeaks(where string, text []byte) {
	if at := secretForm.FindIndex(text); at != nil {
		s.wrong("%s: a secret that begins with %.6s is there", where, text[at[0]:at[1]])
	}
}

// findStored looks into every file of a dead process's directory: the store alone
// must not contain a token.
func (s *soak) findStored() error {
	files, err := filepath.Glob(filepath.Join(s.options.Dir, "*"))
	if err != nil {
		return err
	}
	for _, path := range files {
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		s.findLeaks("file "+filepath.Base(path), text)
	}
	return nil
}
