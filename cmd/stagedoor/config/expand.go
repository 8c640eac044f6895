package config

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// maxSecret bounds the file of a secret, in bytes. A secret is a line, so a larger file is a mistake.
const maxSecret = 64 << 10

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand fills in ${NAME} from the environment and, for secrets, file:PATH.
// What is filled in is not expanded again, because a secret may contain either.
func (d *decoder) expand(n ast.Node, path, text string, secret bool) string {
	whole := d.variables(n, path, text, secret)
	if !secret || !strings.HasPrefix(text, "file:") {
		return whole
	}
	content, err := readSecret(strings.TrimPrefix(whole, "file:"))
	if err != nil {
		d.fail(n, path, "expected a readable file with the secret in it: %v", err)
	}
	return content
}

// variables fills in ${NAME}. A missing variable is a mistake, never an empty text, because an empty key would be
// sent to the provider. Only a secret must not be empty: other settings may be switched off by an empty variable.
func (d *decoder) variables(n ast.Node, path, text string, secret bool) string {
	if strings.Contains(variable.ReplaceAllString(text, "*"), "${") {
		// Else ${KEY:-none} would be sent to a provider as its key.
		d.fail(n, path, "expected ${NAME}: letters, digits and _")
		return text
	}
	return variable.ReplaceAllStringFunc(text, func(m string) string {
		name := m[2 : len(m)-1]
		v, ok := d.env(name)
		switch {
		case !ok:
			d.fail(n, path, "the environment variable %s is not set", name)
		case v == "" && secret:
			d.fail(n, path, "the environment variable %s is empty", name)
		}
		return v
	})
}

// readSecret returns the content of a file without the space around it. A named pipe is allowed, because secret
// managers offer them. Errors name the file and never what is in it.
func readSecret(file string) (string, error) {
	info, err := os.Stat(file)
	var failed *fs.PathError
	switch {
	case errors.As(err, &failed):
		return "", errors.New(file + ": " + failed.Err.Error())
	case err != nil:
		return "", err
	case !info.Mode().IsRegular() && info.Mode()&fs.ModeNamedPipe == 0:
		return "", errors.New(file + " is not a file")
	case info.Size() > maxSecret:
		return "", errors.New(file + " is too large")
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(b))
	if secret == "" {
		return "", errors.New(file + " is empty")
	}
	return secret, nil
}
