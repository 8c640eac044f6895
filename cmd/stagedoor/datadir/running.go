package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/state/ownership"
)

// Running describes a gateway that runs on this machine. It is the content of a run file, which exists so that
// commands that look on another data directory can say where the gateway is.
type Running struct {
	Data    string `json:"data"`    // an absolute path, or "memory"
	Address string `json:"address"` // where clients reach it
}

const (
	systemRuns   = "/run/stagedoor" // what a service gets as $RUNTIME_DIRECTORY
	runPattern   = "gateway-*.json"
	maxRunFile   = 8 << 10
	maxRunFiles  = 100
	userRuntimes = "/run/user"
)

// Announce makes the run file of this process: in $RUNTIME_DIRECTORY, which systemd sets, else in
// $XDG_RUNTIME_DIR/stagedoor, else in a directory of the user's own in the system's temporary directory. The process
// holds a lock on the file, so that a file that is left behind by a crash is recognised. withdraw removes the file.
func Announce(env func(string) (string, bool), r Running) (withdraw func(), err error) {
	dir, _ := env("RUNTIME_DIRECTORY")
	dir, _, _ = strings.Cut(dir, ":")
	if dir == "" {
		dir = ownRuns(env)
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
	}
	if !trusted(dir) {
		return nil, fmt.Errorf("%s belongs to another user, or others may write in it", dir)
	}
	if r.Data != "memory" {
		if r.Data, err = filepath.Abs(r.Data); err != nil {
			return nil, err
		}
	}
	f, err := os.CreateTemp(dir, runPattern)
	if err != nil {
		return nil, err
	}
	withdraw = func() { _ = errors.Join(os.Remove(f.Name()), f.Close()) } // the lock alone tells readers
	err = errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), json.NewEncoder(f).Encode(r),
		f.Chmod(0o644)) // the directory says who may read it
	if err != nil {
		withdraw()
		return nil, err
	}
	return withdraw, nil
}

func ownRuns(env func(string) (string, bool)) string {
	if dir, _ := env("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "stagedoor")
	}
	return filepath.Join(os.TempDir(), "stagedoor-"+strconv.Itoa(os.Geteuid()))
}

// trusted reports whether dir is a directory of this user's, root's, or, for root, of any user, in which only its owner
// can write. Other users could otherwise name gateways that do not exist.
func trusted(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	uid, _, ok := ownership.Of(info)
	self := os.Geteuid()
	return !ok || self == 0 || uid == 0 || int(uid) == self || dir == systemRuns
}

// runningGateways returns the gateways that run on this machine as far as this user may know. Root sees those of all
// users if it has no runtime directory of its own, which is so under sudo.
func runningGateways(env func(string) (string, bool)) []Running {
	dirs := []string{ownRuns(env), systemRuns}
	if own, _ := env("XDG_RUNTIME_DIR"); own == "" && os.Geteuid() == 0 {
		temporary := filepath.Join(os.TempDir(), "stagedoor-[0-9]*")
		for _, pattern := range []string{userRuntimes + "/*/stagedoor", temporary} {
			more, _ := filepath.Glob(pattern)
			dirs = append(dirs, more[:min(len(more), maxRunFiles)]...)
		}
	}
	slices.Sort(dirs)
	var found []Running
	for _, dir := range slices.Compact(dirs) {
		if !trusted(dir) {
			continue
		}
		files, _ := filepath.Glob(filepath.Join(dir, runPattern))
		for _, file := range files[:min(len(files), maxRunFiles)] {
			if r, ok := readRunFile(file); ok {
				found = append(found, r)
			}
		}
	}
	return found
}

// readRunFile returns false for a file that no process holds locked, and removes it if it may.
func readRunFile(path string) (r Running, ok bool) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return r, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return r, false
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		if uid, _, _ := ownership.Of(info); int(uid) == os.Geteuid() {
			_ = os.Remove(path)
		}
		return r, false
	}
	err = json.NewDecoder(io.LimitReader(f, maxRunFile)).Decode(&r)
	return r, err == nil && r.Data != ""
}

// rejectOther returns an error if no gateway runs on data, which the command line does not name, and one runs on this
// machine on another directory. A command would otherwise change a store that the user does not mean.
func (f *Flags) rejectOther(data string) error {
	absolute, err := filepath.Abs(data)
	if err != nil {
		return err
	}
	var others []Running
	for _, r := range runningGateways(f.env) {
		if r.Data == absolute {
			return nil
		}
		others = append(others, r)
	}
	if len(others) == 0 {
		return nil
	}
	instead := fmt.Sprintf("give --data %s to use it without a gateway", data)
	var text strings.Builder
	fmt.Fprintf(&text, "no gateway runs on %s, but %s on this machine; %s", data,
		map[bool]string{true: "another one runs", false: "others run"}[len(others) == 1], instead)
	for _, r := range others {
		where := "its state is in memory: commands cannot reach it"
		if r.Data != "memory" {
			where = "reach it with --data " + cli.Printable(r.Data)
		}
		fmt.Fprintf(&text, "\n  %s: %s", cli.Printable(r.Address), where)
	}
	return errors.New(text.String())
}
