package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"stagedoor/state/journal"
	"stagedoor/state/ownership"
)

// Free space that a data directory should have. Below the least a busy gateway
// refuses writes soon.
const (
	enoughFree = 1 << 30
	leastFree  = 64 << 20
)

// directory checks the data directory, without locking its store.
func directory(data string, running bool) []Check {
	const name = "data directory"
	if data == "memory" {
		return []Check{
			{
				name, Warning, "the state is kept in memory",
				"users, keys, money and stored responses are lost at every restart: give a directory (data, --data)",
			},
		}
	}
	info, err := os.Stat(data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []Check{parent(data)}
	case err != nil:
		return []Check{{name, Failed, err.Error(), "let the gateway's user read it"}}
	case !info.IsDir():
		return []Check{{name, Failed, data + " is no directory", "choose another (data, --data)"}}
	}
	return []Check{access(data, info), owner(data, info, os.Geteuid()), free(data), store(data, running)}
}

// parent checks the directory in which the first start will make the data directory.
func parent(data string) Check {
	above := filepath.Dir(filepath.Clean(data))
	for { // the start makes all that are missing
		if _, err := os.Stat(above); err == nil || above == filepath.Dir(above) {
			break
		}
		above = filepath.Dir(above)
	}
	if err := writable(above); err != nil {
		return Check{
			"data directory", Failed, fmt.Sprintf("%s is not there and cannot be made: %v", data, err),
			"make it, owned by the gateway's user, with mode 700",
		}
	}
	return Check{"data directory", OK, data + " will be made by the first start", ""}
}

// access checks whether the process can write the directory and whether other users can enter it.
func access(data string, info fs.FileInfo) Check {
	const name = "data directory"
	if err := writable(data); err != nil {
		return Check{name, Failed, fmt.Sprintf("%s cannot be written: %v", data, err), "give it to the gateway's user"}
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return Check{
			name, Warning, fmt.Sprintf("%s can be entered by others (mode %o)", data, mode),
			"chmod 700 " + data + ": the control socket and the stored prompts are in it",
		}
	}
	return Check{name, OK, data, ""}
}

// owner compares the owner of the directory with this process, and with the owners of what lies in it. Older commands
// that ran as root left files of another owner, and so does a copy.
func owner(data string, info fs.FileInfo, process int) Check {
	const name = "owner"
	uid, gid, ok := ownership.Of(info)
	if !ok {
		return Check{name, Skipped, "this system does not say who owns a file", ""}
	}
	mend := fmt.Sprintf("chown -R %d:%d %s", uid, gid, data)
	if process != 0 && uint32(process) != uid {
		return Check{name, Failed, fmt.Sprintf("%s belongs to %s, and this process to %s", data, userName(uid),
			userName(uint32(process))), fmt.Sprintf("run it as %s, or: chown -R %d %s", userName(uid), process, data)}
	}
	var wrong string
	err := filepath.WalkDir(data, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		in, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // of a gateway that runs
		}
		if err != nil {
			return err
		}
		if u, _, _ := ownership.Of(in); u != uid {
			wrong = fmt.Sprintf("%s belongs to %s, and its directory to %s", path, userName(u), userName(uid))
			return filepath.SkipAll
		}
		return nil
	})
	switch {
	case wrong != "":
		return Check{name, Failed, wrong, mend}
	case err != nil:
		return Check{name, Warning, err.Error(), mend}
	}
	return Check{name, OK, userName(uid), ""}
}

// userName returns the name of a user, or the number if it has none.
func userName(uid uint32) string {
	number := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(number); err == nil {
		return u.Username
	}
	return "user " + number
}

// writable asks the kernel for the rights of this process, and writes nothing.
func writable(dir string) error {
	const writeAndSearch = 2 | 1 // W_OK, X_OK
	return syscall.Access(dir, writeAndSearch)
}

// free checks the space that is left on the disk of the directory for a user other than root.
func free(data string) Check {
	const name, advice = "free space", "make room: without any, writes are refused until there is some"
	var st syscall.Statfs_t
	if err := syscall.Statfs(data, &st); err != nil {
		return Check{name, Warning, "is not known: " + err.Error(), ""}
	}
	bytes := int64(st.Bavail) * int64(st.Bsize)
	detail := fmt.Sprintf("%d MiB", bytes>>20)
	switch {
	case bytes < leastFree:
		return Check{name, Failed, detail, advice}
	case bytes < enoughFree:
		return Check{name, Warning, detail, advice}
	}
	return Check{name, OK, detail, ""}
}

// store opens the store for reading, which checks its pages. It does not wait for the lock: a gateway that runs has
// it, and then there is nothing to check that the gateway has not checked itself.
func store(data string, running bool) Check {
	const name = "store"
	path := filepath.Join(data, journal.FileName)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Check{name, OK, "will be made by the first start", ""}
	case err != nil:
		return Check{name, Failed, err.Error(), ""}
	case running:
		return Check{name, OK, fmt.Sprintf("in use by the gateway that runs, %d MiB", info.Size()>>20), ""}
	}
	b, err := journal.ReadBolt(path, journal.Options{})
	if err != nil {
		return Check{name, Failed, err.Error(), "see stagedoor state verify; restore a backup if it is damaged"}
	}
	if err := b.Close(); err != nil {
		return Check{name, Failed, err.Error(), ""}
	}
	return Check{name, OK, fmt.Sprintf("%d MiB, its pages are sound", info.Size()>>20), ""}
}
