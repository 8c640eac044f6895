package flow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/flow"
	"stagedoor/providers/dialogue"
)

func TestRefusedRequestsAreRecordedWithAShareForEachKey(t *testing.T) {
	now := time.Unix(7200, 0)
	r := flow.New(func() time.Time { return now })
	var got []*flow.Request
	r.SetRecorder(func(q *flow.Request) { got = append(got, q) }, func() bool { return true })
	refuse := func(key string) {
		r.Refused(flow.About{Key: key, Model: "none"}, dialogue.Invalid("model", "is missing"))
	}
	refuse("") // of a stranger
	for range 1000 {
		refuse("a")
	}
	if len(got) != 103 || r.LeftOut() != 897 { // each of 100, then the ones with the numbers 200, 400 and 800
		t.Fatalf("%d of 1,000 are recorded, %d left out", len(got), r.LeftOut())
	}
	v := got[102].View(now)
	if v.Result == nil || v.Result.Status != 400 || !strings.Contains(v.Result.Text, "is missing [399 refused") {
		t.Errorf("the record of the 800th: %+v", v.Result)
	}
	if refuse("b"); len(got) != 104 || got[103].Key != "b" {
		t.Error("a key has taken the share of another one")
	}
	now = now.Add(time.Hour)
	if refuse("a"); len(got) != 105 {
		t.Error("a key has no share in the next hour")
	}
	for i := range 5000 {
		refuse(fmt.Sprint("key", i))
	}
	if len(got) != 105+4095 {
		t.Errorf("%d keys have a share", len(got)-104)
	}
	if len(r.Active(nil)) != 0 || r.Totals().Ended != 0 {
		t.Error("a refused request was in flight")
	}
}

func TestTheNumberOfRefusedRequestsThatWereLeftOutOutlastsTheHour(t *testing.T) {
	now := time.Unix(7200, 0)
	r := flow.New(func() time.Time { return now })
	var last string
	r.SetRecorder(func(q *flow.Request) { last = q.View(now).Result.Text }, func() bool { return true })
	refuse := func(key string) {
		r.Refused(flow.About{Key: key, Model: "none"}, dialogue.Invalid("model", "is missing"))
	}
	for range 190 {
		refuse("a")
	}
	now = now.Add(time.Hour)
	refuse("b")
	now = now.Add(5 * time.Hour)
	if refuse("a"); !strings.HasSuffix(last, "[90 refused requests before this one are not in the log]") {
		t.Errorf("the next record is %q", last)
	}
	if refuse("a"); strings.Contains(last, "not in the log") {
		t.Errorf("the one after it is %q", last)
	}
	now = now.Add(time.Hour)
	if refuse("a"); strings.Contains(last, "not in the log") {
		t.Errorf("the one of the next hour is %q", last)
	}
}

func TestRefusedRequestsAreNotCountedWhileNoLogIsKept(t *testing.T) {
	r, kept, recorded := flow.New(func() time.Time { return time.Unix(7200, 0) }), false, 0
	r.SetRecorder(func(*flow.Request) { recorded++ }, func() bool { return kept })
	refuse := func() {
		for range 150 {
			r.Refused(flow.About{Key: "a", Model: "none"}, dialogue.Invalid("model", "is missing"))
		}
	}
	if refuse(); recorded != 0 || r.LeftOut() != 0 {
		t.Errorf("without a log %d are recorded and %d left out", recorded, r.LeftOut())
	}
	kept = true
	if refuse(); recorded != 100 || r.LeftOut() != 50 {
		t.Errorf("with a log %d of 150 are recorded and %d left out", recorded, r.LeftOut())
	}
}
