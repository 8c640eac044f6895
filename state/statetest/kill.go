package statetest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

const (
	// childDir tells a test binary that it is the process to be killed, and where
	// it writes.
	childDir = "STAGEDOOR_TEST_CHILD_DIR"
	// killAfter is the number of acknowledgements before the kill: enough for all writers
	// to be in the middle of a commit.
	killAfter = 300
	// failed begins the line of a child that cannot go on.
	failed = "error"
)

// Say prints words as one line, for Kill to hear. Writers may call it at the same
// time.
type Say func(words ...any)

// Child runs write if this process was started by Kill, and reports whether it was.
// Call it from TestMain, before any test is run. write works on a directory until
// it is killed, and says what was acknowledged; it returns only if it fails.
func Child(write func(dir string, say Say) error) bool {
	dir := os.Getenv(childDir)
	if dir == "" {
		return false
	}
	var out sync.Mutex // one line is one write
	say := func(words ...any) {
		out.Lock()
		defer out.Unlock()
		fmt.Println(words...)
	}
	say(failed, write(dir, say))
	return true
}

// Kill runs the test binary as a child that writes to dir, kills it after some
// hundreds of lines that it said and returns how many there were. hear is called
// with each, those that were still in the pipe too: they were said.
func Kill(t testing.TB, dir string, hear func(line string)) (lines int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for said := bufio.NewScanner(out); said.Scan(); lines++ {
		if line := said.Text(); strings.HasPrefix(line, failed) {
			t.Error("child:", line)
		} else {
			hear(line)
		}
		if lines == killAfter {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the child ended by itself")
	}
	return lines
}
