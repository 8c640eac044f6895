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
	"stagedoor/http/admin"
	"stagedoor/state/ownership"
)

// Running describes a gateway that runs on this machine. It is the content of a run file, which exists so that
// commands that look on another data directory can say where the gateway is.
type Running struct {
	Data    string `json:"data"`    // an absolute path, or "memory"
	Address string `json:"address"` // where clients reach it

	user string // who runs the gateway, if that is neither this user nor root nor a service in systemRuns
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
// holds a lock on the file, so that a file that is left behind by a crash is recognised. withdraw removes the file. A
// directory that belongs to another user, or in which others may write, is refused, because commands would follow what
// it says to another socket.
func Announce(env func(string) (string, bool), r Running) (withdraw func(), err error) {
	dir, _ := env("RUNTIME_DIRECTORY")
	dir, _, _ = strings.Cut(dir, ":")
	if dir == "" {
		dir = ownRuns(env)
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
	}
	if user, ok := runsOf(dir); !ok || user != "" {
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

// runsOf reports whether run files in dir can be believed: only its owner can write in it, and that is this user, root
// or, for root, any user. Other users could otherwise name gateways that do not exist. The user is empty unless the
// owner is a stranger, whose run files need the proof of readRunFile.
func runsOf(dir string) (user string, ok bool) {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return "", false
	}
	uid, _, known := ownership.Of(info)
	self := os.Geteuid()
	if !known || uid == 0 || int(uid) == self || dir == systemRuns {
		return "", true
	}
	return strconv.Itoa(int(uid)), self == 0
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
		user, ok := runsOf(dir)
		if !ok {
			continue
		}
		files, _ := filepath.Glob(filepath.Join(dir, runPattern))
		for _, file := range files[:min(len(files), maxRunFiles)] {
			if r, ok := readRunFile(file, user); ok {
				found = append(found, r)
			}
		}
	}
	return found
}

// readRunFile returns false for a file that no process holds locked, and removes it if it may. The file of a stranger
// counts only if its data directory exists and belongs to the owner of the file, since any local user could otherwise
// stop root's commands and lead them to any directory.
func readRunFile(path, stranger string) (r Running, ok bool) {
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
	if err = json.NewDecoder(io.LimitReader(f, maxRunFile)).Decode(&r); err != nil || r.Data == "" {
		return r, false
	}
	r.user = stranger
	return r, stranger == "" || ownsDirectory(info, r.Data)
}

// ownsDirectory reports whether data is an existing directory of the owner of a file.
func ownsDirectory(file os.FileInfo, data string) bool {
	info, err := os.Stat(data)
	if err != nil || !info.IsDir() || !filepath.IsAbs(data) {
		return false
	}
	owner, _, known := ownership.Of(file)
	uid, _, ok := ownership.Of(info)
	return known && ok && uid == owner
}

// rejectOther returns an error if no gateway runs on data, the default directory, and one runs on this machine on
// another directory. A command would otherwise change a store that the user does not mean.
func (f *Flags) rejectOther(data string) error {
	if socket, err := Socket(data); err == nil {
		if _, err = admin.Dial(socket); !noGateway(err) {
			return nil // one runs, or Dial says why it cannot be reached
		}
	}
	meant, _ := os.Stat(data) // a missing directory is the same as no other
	var others []Running
	for _, r := range runningGateways(f.env) {
		// One that is starting has no socket yet. Links may lead to the directory, so that its path says nothing.
		if info, err := os.Stat(r.Data); r.Data != "memory" && err == nil && os.SameFile(meant, info) {
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
		fmt.Fprintf(&text, "\n  %s: %s", cli.Printable(r.Address), r.reach())
	}
	return errors.New(text.String())
}

// reach returns a text that says how a command reaches the gateway.
func (r *Running) reach() string {
	if r.Data == "memory" {
		return "its state is in memory: commands cannot reach it"
	}
	how := "reach it with --data " + cli.Printable(r.Data)
	if r.user != "" {
		how += ", which belongs to the user " + r.user
	}
	return how
}
