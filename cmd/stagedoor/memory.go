package main

import (
	"bufio"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	memoryVariable = "GOMEMLIMIT"
	// memoryShare is the per cent of the control group's memory that the runtime
	// may use: the rest is for what it does not count, such as the kernel's
	// buffers of connections and the mapped pages of the store.
	memoryShare = 90
)

// limitMemory has the runtime collect garbage sooner where the control group
// allows little memory, in place of being killed. An operator's own GOMEMLIMIT
// rules.
func limitMemory(log *slog.Logger) {
	if os.Getenv(memoryVariable) != "" {
		return
	}
	if most, ok := groupMemory(os.DirFS("/")); ok {
		limit := most / 100 * memoryShare
		debug.SetMemoryLimit(limit)
		log.Info("memory limited by the control group", "group_bytes", most, "limit_bytes", limit)
	}
}

// groupMemory is the least limit of memory of the process's control group and
// those above it, of either version; false: there is none.
func groupMemory(root fs.FS) (int64, bool) {
	file, err := root.Open("proc/self/cgroup")
	if err != nil {
		return 0, false // no Linux, or no control groups
	}
	defer file.Close()
	least := int64(math.MaxInt64)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		// hierarchy:controllers:path; version 2 is hierarchy 0 without controllers.
		parts := strings.SplitN(lines.Text(), ":", 3)
		switch {
		case len(parts) != 3:
		case parts[0] == "0" && parts[1] == "":
			least = min(least, leastOf(root, "sys/fs/cgroup", parts[2], "memory.max"), leastOf(root, "sys/fs/cgroup", parts[2], "memory.high"))
		case strings.Contains(","+parts[1]+",", ",memory,"):
			least = min(least, leastOf(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes"))
		}
	}
	// Version 1 says "none" with the largest number of pages there can be.
	if least >= 1<<62 {
		return 0, false
	}
	return least, true
}

// leastOf reads a limit in a group and in all above it. In a container the path
// may be the host's, which is not there: its own group is the root then.
func leastOf(root fs.FS, mount, group, name string) int64 {
	least := int64(math.MaxInt64)
	for group = path.Clean("/" + group); ; group = path.Dir(group) {
		if text, err := fs.ReadFile(root, path.Join(mount, group, name)); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
				least = min(least, n) // "max" is no number
			}
		}
		if group == "/" {
			return least
		}
	}
}
