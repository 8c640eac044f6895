package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stagedoor/state/journal/redo"
)

// A process writes to a store while strace records what it asks of the system. From
// the record are made the disks that a power cut can leave: what was not synced is
// gone, or some of its sectors are there. Each must open, and hold what the commits
// up to one moment make, the last acknowledged one among them.

// powerDir tells a test binary that it is the process whose power is cut.
const powerDir = "STAGEDOOR_TEST_POWER_DIR"

func TestMain(m *testing.M) {
	dir := os.Getenv(powerDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := powered(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// powerOptions make the log turn, its files grow and checkpoints run all the time.
var powerOptions = Options{LowWater: -1, redoSize: 16 << 10, checkpointAfter: 6 << 10}

// powerCommits is the number of commits between two openings.
const powerCommits = 50

// powered is the process: it acknowledges its commits on standard output.
func powered(dir string) error {
	n := 0
	for _, end := range []func(*Bolt) error{(*Bolt).Close, drop, (*Bolt).Close, drop} {
		b, err := OpenBolt(dir, powerOptions)
		if err != nil {
			return err
		}
		for range powerCommits {
			n++
			if _, err := b.Commit(ctx, powerCommit(n)); err != nil {
				return err
			}
			if _, err := fmt.Printf("%d\n", n); err != nil {
				return err
			}
		}
		if err := end(b); err != nil {
			return err
		}
		if n == 3*powerCommits {
			if _, err := Compact(ctx, dir, powerOptions); err != nil {
				return err
			}
		}
	}
	return nil
}

// powerCommit is the nth commit.
func powerCommit(n int) []Batch {
	random := rand.New(rand.NewPCG(uint64(n), 11))
	key := func(n int) []byte { return fmt.Appendf(nil, "%05d", n) }
	value := func(most int) []byte {
		v := make([]byte, random.IntN(most))
		for i := range v {
			v[i] = byte(random.Uint32())
		}
		return v
	}
	ops := []Op{
		{Table: Meta, Key: []byte("last"), Value: key(n)},
		{Table: Ledger, Key: key(n), Value: value(1200), New: true},
	}
	switch {
	case n%19 == 0:
		ops = append(ops, Op{Table: Body, Key: key(n), Value: value(40 << 10)})
	case n%17 == 0:
		ops = append(ops, Op{Kind: DeletePrefix, Table: Ledger, Key: key(n / 2)[:4]})
	case n%3 == 0:
		ops = append(ops, Op{Kind: Delete, Table: Ledger, Key: key(n - 5)})
	}
	return []Batch{{Ops: ops}}
}

// digest tells stores apart that do not hold the same.
func digest(s Store) (string, LSN, error) {
	sum := sha256.New()
	lsn, err := s.Load(ctx, Tables(), func(t Table, r Record) error {
		_, err := fmt.Fprintf(sum, "%s %q %d %x\n", t, r.Key, r.Rev, r.Value)
		return err
	})
	return string(sum.Sum(nil)), lsn, err
}

// powerTrace holds the system calls of a process, and the digests of its commits.
type powerTrace struct {
	dir     string
	lines   []string
	digests []string // after so many commits
}

func tracePower(t *testing.T) powerTrace {
	t.Helper()
	p := powerTrace{dir: filepath.Join(t.TempDir(), "store")}
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command("strace", "-f", "-xx", "-s", "4194304", "-o", record, "-e",
		"trace="+strings.Join(powerCalls, ","), os.Args[0])
	cmd.Env = append(os.Environ(), powerDir+"="+p.dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	p.lines = strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	model := NewMemory()
	for n := range 4*powerCommits + 2 {
		if n > 0 {
			if _, err := model.Commit(ctx, powerCommit(n)); err != nil {
				t.Fatal(err)
			}
		}
		sum, _, err := digest(model)
		if err != nil {
			t.Fatal(err)
		}
		p.digests = append(p.digests, sum)
	}
	return p
}

// powerFault changes a trace so that it has a loss to be found.
type powerFault struct {
	unsynced string // syncs of this file are taken out
	early    int    // acknowledgements come so many commits early
}

// cut cuts the power n times and returns what is wrong with what is left, up to
// most of it.
func (p *powerTrace) cut(t *testing.T, seed uint64, n, most int, fault powerFault) (wrong []string) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 13))
	points := make([]int, n)
	for i := range points {
		points[i] = random.IntN(len(p.lines)) + 1
	}
	slices.Sort(points)
	d := newDisk(p.dir, fault.unsynced)
	for at, line := range p.lines {
		if err := d.line(line); err != nil {
			t.Fatalf("line %d of the record: %v", at, err)
		}
		for len(points) > 0 && points[0] == at+1 {
			points = points[1:]
			lands := []float64{0, 0, 0.1, 0.5, 0.9, 1}[random.IntN(6)]
			dir := t.TempDir()
			if err := d.image(dir, random, lands); err != nil {
				t.Fatal(err)
			}
			acked := min(d.acknowledged+fault.early, 4*powerCommits)
			if err := p.check(dir, acked); err != nil {
				wrong = append(wrong, fmt.Sprintf("seed %d, line %d, %.0f%% of the sectors, %d acknowledged: %v", seed,
					at, 100*lands, acked, err))
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if len(wrong) == most {
				return wrong
			}
		}
	}
	if d.acknowledged != 4*powerCommits {
		t.Fatalf("%d of %d commits were acknowledged", d.acknowledged, 4*powerCommits)
	}
	return wrong
}

// check opens what a power cut left, goes on with it and opens it again.
func (p *powerTrace) check(dir string, acked int) error {
	for round := range 3 {
		b, err := OpenBolt(dir, powerOptions)
		if err != nil {
			return fmt.Errorf("opening %d: %w", round, err)
		}
		sum, lsn, err := digest(b)
		switch n := int(lsn); {
		case err != nil:
		case n < acked:
			err = fmt.Errorf("opening %d: it ends with commit %d", round, n)
		case n > acked+1:
			err = fmt.Errorf("opening %d: it ends with commit %d, which was not begun", round, n)
		case sum != p.digests[n]:
			err = fmt.Errorf("opening %d: it is not what %d commits make", round, n)
		case round == 0 && n+1 < len(p.digests):
			acked = n + 1
			_, err = b.Commit(ctx, powerCommit(acked))
		}
		end := drop
		if round == 1 {
			end = (*Bolt).Close
		}
		if err := errors.Join(err, end(b)); err != nil {
			return err
		}
	}
	return nil
}

func TestPowerCutLosesNothingAcknowledged(t *testing.T) {
	p, images := tracePower(t), 300
	if testing.Short() {
		images = 16
	}
	for _, wrong := range p.cut(t, rand.Uint64(), images, 5, powerFault{}) {
		t.Error(wrong)
	}
	// What does not find these finds nothing.
	for name, fault := range map[string]powerFault{
		"a log that is not synced":                     {unsynced: redo.Names[0]},
		"a file that is not synced":                    {unsynced: FileName},
		"names that are not synced":                    {unsynced: "."},
		"a commit that is acknowledged before its end": {early: 1},
	} {
		if p.cut(t, 1, 100, 1, fault) == nil {
			t.Errorf("%s is not noticed", name)
		}
	}
}

// disk holds the writes to one directory, and marks the durable ones.
type disk struct {
	dir          string
	unsynced     string
	names        map[string]*inode // as the process sees them
	durable      map[string]*inode
	renames      []nameChange // that are not durable, in order
	handles      map[string]*handle
	begun        map[string]call // by thread
	acknowledged int
}

type inode struct {
	name    string // the first
	data    []byte // durable
	pending []*diskWrite
}

// diskWrite is a write or, without data, a file's new length.
type diskWrite struct {
	at   int64
	data []byte
	done bool
}

// nameChange is a name for a file, or its end.
type nameChange struct {
	name string
	file *inode
}

type handle struct {
	file *inode // nil: the directory
	at   int64
}

// call is a system call.
type call struct {
	name string
	args []string
	// What a sync makes durable is what was done when it began.
	writes  []*diskWrite
	renames int
	written *diskWrite
}

var powerCalls = []string{"openat", "close", "pwrite64", "write", "fsync", "fdatasync", "ftruncate", "fallocate",
	"rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat"}

func newDisk(dir, unsynced string) *disk {
	return &disk{dir: dir, unsynced: unsynced, names: map[string]*inode{}, durable: map[string]*inode{},
		handles: map[string]*handle{}, begun: map[string]call{}}
}

// line takes a line of the record: a call, its beginning or its end.
func (d *disk) line(text string) error {
	thread, text, _ := strings.Cut(text, " ")
	text = strings.TrimLeft(text, " ")
	if strings.HasPrefix(text, "---") || strings.HasPrefix(text, "+++") {
		return nil
	}
	c, resumed := d.begun[thread]
	if !resumed {
		name, args, ok := strings.Cut(text, "(")
		if !ok {
			return fmt.Errorf("cannot be read: %.80q", text)
		}
		args, _, _ = strings.Cut(args, " <unfinished")
		if at := strings.LastIndex(args, ") "); at >= 0 {
			args = args[:at]
		}
		c = call{name: name, args: strings.Split(args, ", ")}
		if err := d.begin(&c); err != nil {
			return err
		}
	}
	if strings.HasSuffix(text, "<unfinished ...>") {
		d.begun[thread] = c
		return nil
	}
	delete(d.begun, thread)
	at := strings.LastIndex(text, "= ")
	if at < 0 {
		return fmt.Errorf("has no result: %.80q", text)
	}
	result, _, _ := strings.Cut(text[at+2:], " ")
	return d.end(&c, result)
}

// begin is the moment from which a call may have an effect.
func (d *disk) begin(c *call) error {
	h := d.handles[c.args[0]]
	switch c.name {
	case "write":
		if c.args[0] == "1" {
			line, err := unquote(c.args[1])
			if err != nil {
				return err
			}
			_, err = fmt.Sscan(line, &d.acknowledged)
			return err
		}
		if h == nil {
			return nil
		}
		return d.write(c, h.file, fmt.Sprint(h.at), c.args[1])
	case "pwrite64":
		if h == nil {
			return nil
		}
		return d.write(c, h.file, c.args[3], c.args[1])
	case "ftruncate":
		if h == nil {
			return nil
		}
		return d.write(c, h.file, c.args[1], `""`)
	case "fallocate":
		return errors.New("a call that this disk does not know")
	case "fsync", "fdatasync":
		if h == nil {
			return nil
		}
		if h.file == nil {
			c.renames = len(d.renames)
			return nil
		}
		for _, w := range h.file.pending {
			if w.done {
				c.writes = append(c.writes, w)
			}
		}
	}
	return nil
}

func (d *disk) write(c *call, file *inode, at, quoted string) error {
	data, err := unquote(quoted)
	if err != nil {
		return err
	}
	w := &diskWrite{data: []byte(data)}
	if _, err := fmt.Sscan(at, &w.at); err != nil {
		return err
	}
	c.written = w
	file.pending = append(file.pending, w)
	return nil
}

// end is the moment from which a call has had its effect.
func (d *disk) end(c *call, result string) error {
	if strings.HasPrefix(result, "-") {
		if c.written != nil {
			return errors.New("a write failed")
		}
		return nil
	}
	h := d.handles[c.args[0]]
	if w := c.written; w != nil {
		w.done = true
		if len(w.data) > 0 && result != fmt.Sprint(len(w.data)) {
			return fmt.Errorf("a write of %d bytes wrote %s", len(w.data), result)
		}
		if c.name == "write" {
			h.at += int64(len(w.data))
		}
		return nil
	}
	switch c.name {
	case "openat":
		return d.open(c, result)
	case "close":
		delete(d.handles, c.args[0])
	case "fsync", "fdatasync":
		if h != nil {
			d.sync(c, h.file)
		}
	case "unlink", "unlinkat":
		return d.unlink(c)
	case "link", "linkat":
		return d.link(c, false)
	case "rename", "renameat", "renameat2":
		return d.link(c, true)
	}
	return nil
}

// name is a path's in the directory; false: it is elsewhere.
func (d *disk) name(quoted string) (string, bool, error) {
	path, err := unquote(quoted)
	if err != nil {
		return "", false, err
	}
	name, err := filepath.Rel(d.dir, path)
	return name, err == nil && name != ".." && !strings.HasPrefix(name, "../"), nil
}

func (d *disk) open(c *call, fd string) error {
	delete(d.handles, fd)
	name, here, err := d.name(c.args[1])
	if err != nil || !here {
		return err
	}
	if name == "." {
		d.handles[fd] = &handle{}
		return nil
	}
	if d.names[name] == nil {
		d.change(name, &inode{name: name})
	}
	if strings.Contains(c.args[2], "O_TRUNC") || strings.Contains(c.args[2], "O_APPEND") {
		return errors.New("a way to open a file that this disk does not know")
	}
	d.handles[fd] = &handle{file: d.names[name]}
	return nil
}

// change gives a name to a file, or to none.
func (d *disk) change(name string, file *inode) {
	d.names[name] = file
	d.renames = append(d.renames, nameChange{name, file})
}

// paths are the call's names in the directory.
func (d *disk) paths(c *call) (names []string, err error) {
	for _, arg := range c.args {
		if !strings.HasPrefix(arg, `"`) {
			continue
		}
		name, here, err := d.name(arg)
		if err != nil {
			return nil, err
		}
		if here {
			names = append(names, name)
		}
	}
	return names, nil
}

func (d *disk) unlink(c *call) error {
	names, err := d.paths(c)
	for _, name := range names {
		d.change(name, nil)
	}
	return err
}

func (d *disk) link(c *call, move bool) error {
	names, err := d.paths(c)
	if err != nil || len(names) == 0 {
		return err
	}
	if len(names) != 2 {
		return errors.New("a name from or to elsewhere")
	}
	d.change(names[1], d.names[names[0]])
	if move {
		d.change(names[0], nil)
	}
	return nil
}

// sync makes durable what was done when it began.
func (d *disk) sync(c *call, file *inode) {
	if file == nil {
		if d.unsynced != "." {
			d.durable = applied(d.durable, d.renames[:c.renames])
			d.renames = d.renames[c.renames:]
		}
		return
	}
	if d.unsynced != "" && d.names[d.unsynced] == file {
		return
	}
	for _, w := range c.writes {
		file.data = w.onto(file.data)
	}
	file.pending = slices.DeleteFunc(file.pending, func(w *diskWrite) bool { return slices.Contains(c.writes, w) })
}

func applied(names map[string]*inode, changes []nameChange) map[string]*inode {
	names = maps.Clone(names)
	for _, c := range changes {
		names[c.name] = c.file
	}
	return names
}

// onto is data with a write.
func (w *diskWrite) onto(data []byte) []byte {
	if len(w.data) == 0 {
		if w.at <= int64(len(data)) {
			return data[:w.at:w.at]
		}
		return append(data, make([]byte, w.at-int64(len(data)))...)
	}
	if end := w.at + int64(len(w.data)); end > int64(len(data)) {
		data = append(data, make([]byte, end-int64(len(data)))...)
	}
	copy(data[w.at:], w.data)
	return data
}

const sector = 512

// image writes what a power cut leaves now into dir. lands is how probable it is that
// a sector arrived that was not synced; names arrive in their order.
func (d *disk) image(dir string, random *rand.Rand, lands float64) error {
	n := 0
	for n < len(d.renames) && random.Float64() < lands {
		n++
	}
	for name, file := range applied(d.durable, d.renames[:n]) {
		if file == nil {
			continue
		}
		data := slices.Clone(file.data)
		for _, w := range file.pending {
			for _, part := range w.sectors() {
				if random.Float64() < lands {
					data = part.onto(data)
				}
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// sectors is a write in parts that arrive or not.
func (w *diskWrite) sectors() []diskWrite {
	if len(w.data) == 0 {
		return []diskWrite{*w}
	}
	var parts []diskWrite
	at := w.at
	for data := w.data; len(data) > 0; {
		n := min(int64(len(data)), sector-at%sector)
		parts = append(parts, diskWrite{at: at, data: data[:n]})
		data, at = data[n:], at+n
	}
	return parts
}

// unquote reads a string of which every byte is written in hexadecimal.
func unquote(quoted string) (string, error) {
	digits, ok := strings.CutPrefix(quoted, `"`)
	digits, end := strings.CutSuffix(digits, `"`)
	if !ok || !end {
		return "", fmt.Errorf("not a whole string: %.80q", quoted)
	}
	text, err := hex.DecodeString(strings.ReplaceAll(digits, `\x`, ""))
	return string(text), err
}
