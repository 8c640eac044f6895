package main

import (
	"bufio"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"stagedoor/cmd/stagedoor/config"
)

const (
	memoryVariable = "GOMEMLIMIT"
	// memoryShare is the per cent of the control group's memory that the runtime
	// may use: the rest is for what it does not count, such as the kernel's
	// buffers of connections and the mapped pages of the store.
	memoryShare = 90
)

// unknownMemory is assumed where the system does not say how much memory it has.
const unknownMemory = 2 << 30

// allowedMemory returns the bytes that the process may use: what the configuration says,
// else GOMEMLIMIT, else most of what the control group or the machine has.
func allowedMemory(root fs.FS, configuredMiB int) int64 {
	if configuredMiB > 0 {
		return int64(configuredMiB) << 20 / 100 * memoryShare
	}
	if os.Getenv(memoryVariable) != "" {
		if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 { // else it is "off"
			return limit
		}
	}
	most, ok := groupMemory(root)
	if machine := machineMemory(root); !ok || machine < most {
		most = machine
	}
	return most / 100 * memoryShare
}

// collectShare is the per cent of the allowed memory from which on the runtime collects
// garbage all the time. It exceeds that for moments, when large bodies grow at once.
const collectShare = 95

// limitMemory has the runtime collect garbage sooner where there is little memory, in
// place of being killed. An operator's own GOMEMLIMIT rules.
func limitMemory(allowed int64) {
	if os.Getenv(memoryVariable) == "" {
		debug.SetMemoryLimit(allowed / 100 * collectShare)
	}
}

// Shares of the memory that is left beside the program itself.
const (
	// programBytes estimates the resident memory without requests.
	programBytes = 48 << 20
	// bodyFactor estimates the memory per byte of a body while it arrives and is sent on.
	bodyFactor = 2
	// requestBytes estimates the memory of a small request in flight: two connections with
	// their buffers, three goroutines and the request itself.
	requestBytes = 64 << 10
	// watcherBytes is the same for a watcher and its queue.
	watcherBytes = 64 << 10
	mostRequests = 20_000
	mostWatchers = 4096
)

// roomForRequests returns the bytes that requests may take, of all that the process may
// use.
func roomForRequests(allowed int64) int64 { return max(allowed-programBytes, allowed/4) }

// leastWork is the memory for work that an owner may have while it is free, even where
// its share is smaller. The translation of one text request of the largest size is
// estimated to need it.
const leastWork = 3 * 32 << 20

// workBytes returns the share of all that requests take beside their bodies:
// translation, large replies, background responses.
func workBytes(allowed int64) int64 { return roomForRequests(allowed) / 2 }

// leastSocket is the number of bytes that WebSockets of one owner may keep while they are free, even if its share is
// smaller: one message of the largest size.
const leastSocket = 33 << 20

// socketBytes returns how much WebSockets of responses may keep: messages that wait, and responses that are
// remembered.
func socketBytes(allowed int64) int64 { return roomForRequests(allowed) / 8 }

// keptBytes returns the bytes of replies that are kept for clients which repeat or resume their requests.
func keptBytes(allowed int64) int64 { return roomForRequests(allowed) / 16 }

// ownDescriptors counts the descriptors for the store, the log and other files of the process. A process with a low
// limit keeps a quarter of them, but leastDescriptors, of which about twenty are open while no request is there. One
// with a very low limit keeps half.
const (
	ownDescriptors   = 256
	leastDescriptors = 32
)

// clientDescriptors returns how many of the process's descriptors clients may take: half
// of what is left beside its own. The other half is for calls to upstreams, which each
// request may need one for.
func clientDescriptors(limit uint64) int {
	most := int(min(limit, 1<<20))
	own := min(ownDescriptors, max(most/4, leastDescriptors), most/2)
	return max((most-own)/2, 1)
}

// descriptorLimit returns how many descriptors the process may have.
func descriptorLimit() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 1024
	}
	return limit.Cur
}

// connectionBytes estimates the memory of an open connection.
const connectionBytes = 24 << 10

// connections returns how many clients may be connected at a time.
func connections(allowed int64) int {
	return min(clientDescriptors(descriptorLimit()), int(roomForRequests(allowed)/4/connectionBytes))
}

// withMemory returns limits with shares of the memory in place of zeros.
func withMemory(limits config.Process, allowed int64) config.Process {
	room := roomForRequests(allowed)
	if limits.BodyMiB == 0 {
		limits.BodyMiB = int(max(room/2/bodyFactor>>20, 1))
	}
	if limits.Requests == 0 {
		limits.Requests = min(int(room/4/requestBytes), mostRequests, clientDescriptors(descriptorLimit()))
	}
	if limits.Watchers == 0 {
		limits.Watchers = int(min(room/8/watcherBytes, mostWatchers))
	}
	return limits
}

// machineMemory returns the memory of the machine.
func machineMemory(root fs.FS) int64 {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return unknownMemory // no Linux
	}
	_, line, _ := strings.Cut(string(text), "MemTotal:")
	line, _, _ = strings.Cut(line, "kB")
	n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil || n <= 0 {
		return unknownMemory
	}
	return n << 10
}

// groupMemory returns the least memory limit of the process's control group and the groups above it, of either version.
// It returns false if there is none.
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
			least = min(least, leastOf(root, "sys/fs/cgroup", parts[2], "memory.max"),
				leastOf(root, "sys/fs/cgroup", parts[2], "memory.high"))
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
