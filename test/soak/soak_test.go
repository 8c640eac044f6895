package soak

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stagedoor/http/admin"
	"stagedoor/test/harness"
)

var (
	cycles = flag.Int("soak.cycles", 8, "how often the gateway is killed under load")
	load   = flag.Duration("soak.load", time.Second, "how long the load of a cycle lasts at most")
	seed   = flag.Uint64("soak.seed", 0, "of kills and load; 0: another one each time")
)

func TestMain(m *testing.M) { harness.Main(m) }

// Whatever was acknowledged is there after a kill, a code or token is accepted
// once, and the books balance to the micro-dollar (issue: tests with real parts).
func TestNothingAcknowledgedIsLost(t *testing.T) {
	o := Options{Binary: harness.Binary(t), Dir: t.TempDir(), Seed: *seed, Cycles: *cycles, Load: *load}
	if testing.Short() {
		o.Cycles = min(o.Cycles, 2)
	}
	if o.Seed == 0 {
		o.Seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with -soak.seed=%d -soak.cycles=%d -soak.load=%s", o.Seed, o.Cycles, o.Load)
	report, err := Run(t.Context(), o)
	if err != nil {
		t.Error(err)
	}
	for _, w := range report.Wrong {
		t.Error(w)
	}
	t.Logf(
		"%d cycles, %d kills (%d during start-up, %d during checks); %d acknowledged writes checked, %d lost; %d "+
			"calls without an answer (%d carried out, %d not, as far as that can be found out)\n%s",
		report.Cycles,
		report.Kills,
		report.InStartUp,
		report.InCheck,
		report.Total(),
		len(report.Wrong),
		report.Unknown,
		report.Done,
		report.Undone,
		strings.Join(report.Kinds(), ", "),
	)
	if err == nil && report.Total() < 10*report.Cycles {
		t.Errorf("only %d acknowledged writes: nothing was tested", report.Total())
	}
}

// Every oracle must notice a directory that forgets what was written during the load;
// otherwise the test above proves nothing. The load is counted in steps rather than in
// seconds, so that a busy machine makes the test slower but never makes it fail.
func TestOraclesNoticeWhatIsForgotten(t *testing.T) {
	copies, killed := t.TempDir(), 0
	report, err := Run(
		t.Context(),
		Options{
			Binary: harness.Binary(t),
			Dir:    t.TempDir(),
			Seed:   1,
			Cycles: 3,
			Load:   time.Second,
			Steps:  vouchersPerCycle,
			Tamper: func(dir string) error {
				if killed++; killed == 1 {
					return replace(copies, dir)
				}
				return replace(dir, copies)
			},
		},
	)
	t.Logf("%d complaints, %v", len(report.Wrong), err)
	all := strings.Join(report.Wrong, "\n")
	for _, want := range []string{"its receipt is lost", "key key_", "payment payment-", "a good access token", "which must be active: true", "a redeem code"} {
		if !strings.Contains(all, want) {
			t.Errorf("no complaint contains %q:\n%s", want, all)
		}
	}
}

// replace makes the files of one directory those of another. The control socket
// is no file.
func replace(dir, by string) error {
	stale, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return err
	}
	for _, path := range append(stale, filepath.Join(by, admin.SocketName)) {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return os.CopyFS(dir, os.DirFS(by))
}

func TestSecretsAreFoundByTheirForm(t *testing.T) {
	s := soak{}
	for text, want := range map[string]bool{
		`{"id":"grt_0192f1aa5c2a7d3e9f0b1c2d3e4f5a6b","path":"/api/oauth2/token"}`: false,
		"token=rt_" + strings.Repeat("a-_9", 12):                                   true,
		`key="sd-` + strings.Repeat("Z", 43) + `"`:                                 true,
		"code=ABCD-2345-ABCD-2345-ABCD-2345 ":                                      true,
		"password=" + password:                                                     true,
	} {
		s.report.Wrong = nil
		if s.findLeaks("text", []byte(text)); (len(s.report.Wrong) > 0) != want {
			t.Errorf("%s: got %v", text, s.report.Wrong)
		}
	}
}
