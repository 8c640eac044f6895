package main

import (
	"testing"
	"testing/fstest"
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
