package main

import (
	"testing"
	"testing/fstest"

	"stagedoor/cmd/stagedoor/config"
)

func TestTheLeastLimitOfTheControlGroupsCounts(t *testing.T) {
	const gib = 1 << 30
	for name, c := range map[string]struct {
		files map[string]string
		want  int64 // 0: none
	}{
		"no control groups": {nil, 0},
		"version 2":         {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "1073741824\n"}, gib},
		"no limit":          {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 0},
		"a group above": {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n",
			"sys/fs/cgroup/a/memory.max": "1073741824\n"}, gib},
		"throttled sooner": {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "2147483648\n",
			"sys/fs/cgroup/a/memory.high": "1073741824\n"}, gib},
		"the host's path": {map[string]string{"proc/self/cgroup": "0::/host/path\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, gib},
		"version 1": {map[string]string{"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/a\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1073741824\n"}, gib},
		"version 1 without one": {map[string]string{"proc/self/cgroup": "4:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"both versions": {map[string]string{"proc/self/cgroup": "4:memory:/a\n0::/a\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1073741824\n"}, gib},
		"climbing out": {map[string]string{"proc/self/cgroup": "0::/../../a\n", "sys/fs/cgroup/a/memory.max": "1073741824\n"}, gib},
		"junk":         {map[string]string{"proc/self/cgroup": "junk\n0:\n\n", "sys/fs/cgroup/memory.max": "-1"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{}
			for file, text := range c.files {
				root[file] = &fstest.MapFile{Data: []byte(text)}
			}
			got, ok := groupMemory(root)
			if ok != (c.want > 0) || ok && got != c.want {
				t.Errorf("got %d, %v, want %d", got, ok, c.want)
			}
		})
	}
}

// TestTheLimitsOfTheProcessAreSharesOfItsMemory: what requests may take of each kind, as
// it was measured, fits the memory beside the program itself; settings of an operator's
// own stay; and the smallest machine still takes the largest text request it can.
func TestTheLimitsOfTheProcessAreSharesOfItsMemory(t *testing.T) {
	t.Setenv(memoryVariable, "")
	const mib = 1 << 20
	meminfo := func(kib string) fstest.MapFS {
		return fstest.MapFS{"proc/meminfo": &fstest.MapFile{Data: []byte("MemTotal:       " + kib +
			" kB\nMemFree: 1 kB\n")}}
	}
	if got := allowedMemory(meminfo("1048576"), 0); got/mib != 921 {
		t.Errorf("a machine of 1 GiB allows %d MiB, want nine tenths", got/mib)
	}
	group := meminfo("1048576")
	group["proc/self/cgroup"] = &fstest.MapFile{Data: []byte("0::/a\n")}
	group["sys/fs/cgroup/a/memory.max"] = &fstest.MapFile{Data: []byte("268435456\n")}
	if got := allowedMemory(group, 0); got/mib != 230 {
		t.Errorf("a group of 256 MiB allows %d MiB, want nine tenths", got/mib)
	}
	if got := allowedMemory(group, 512); got/mib != 460 {
		t.Errorf("memory_mib 512 allows %d MiB, want nine tenths of that", got/mib)
	}
	if got := allowedMemory(fstest.MapFS{}, 0); got <= 0 {
		t.Errorf("a system that does not tell allows %d", got)
	}
	for _, allowed := range []int64{64 * mib, 230 * mib, 460 * mib, 921 * mib, 8 << 30, 1 << 40} {
		l := withMemory(config.Process{}, allowed)
		if l.Requests <= 0 || l.Watchers <= 0 || l.BodyMiB <= 0 || workBytes(allowed) <= 0 {
			t.Errorf("%d MiB: %+v", allowed/mib, l)
		}
		if sum := int64(l.BodyMiB)*mib*bodyFactor + workBytes(allowed); allowed >= 200*mib && sum+programBytes > allowed {
			t.Errorf("%d MiB: bodies and work take %d MiB", allowed/mib, sum/mib)
		}
		if l.Requests > mostRequests || l.Watchers > mostWatchers {
			t.Errorf("%d MiB: %+v", allowed/mib, l)
		}
	}
	own := config.Process{Requests: 7, BodyMiB: 8, Watchers: 9}
	if got := withMemory(own, 230*mib); got != own {
		t.Errorf("got %+v, want the operator's own %+v", got, own)
	}
}
