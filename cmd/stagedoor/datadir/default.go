package datadir

import (
	"fmt"
	"path/filepath"

	"stagedoor/cmd/stagedoor/cli"
)

// Default returns the data directory of a gateway and of commands that are given neither a configuration file nor
// --data: stagedoor below $XDG_DATA_HOME, or below ~/.local/share if that is not set. It need not exist.
//
// The error is a usage error: the environment of a service or of an empty container has no home directory.
func Default(env func(string) (string, bool)) (string, error) {
	// The XDG specification says to ignore a relative path.
	if home, _ := env("XDG_DATA_HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, "stagedoor"), nil
	}
	if home, _ := env("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "share", "stagedoor"), nil
	}
	return "", fmt.Errorf("%w: there is no home directory to keep the state in: give --data DIRECTORY, "+
		"or --data memory to keep none", cli.ErrUsage)
}

// Flag returns the flag that makes another command work on the same data directory, with a space before it. It is
// empty for the default directory.
func Flag(data string, env func(string) (string, bool)) string {
	if usual, err := Default(env); err == nil && usual == data {
		return ""
	}
	return " --data " + data
}
