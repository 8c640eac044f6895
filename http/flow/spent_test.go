package flow_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/requestlog"
)

// spentLog is a log of requests that has only what was spent.
type spentLog struct {
	requestlog.Reader
	off   bool
	err   error
	asked []requestlog.SpentQuery
}

func (l *spentLog) Store() (requestlog.Reader, error) {
	if l.off {
		return nil, state.ErrNotFound
	}
	return l, nil
}

func (l *spentLog) Spent(_ context.Context, q *requestlog.SpentQuery, each func(*requestlog.Spent) error) error {
	l.asked = append(l.asked, *q)
	for _, s := range []requestlog.Spent{{Provider: "up", MicroUSD: 3}, {Provider: "up", MicroUSD: 4},
		{Provider: "x"}} {
		if err := each(&s); err != nil {
			return err
		}
	}
	return l.err
}

func TestTheCostOfAProviderTodayIsThatOfTheLog(t *testing.T) {
	b := newBench(t)
	b.at = time.Date(2026, 5, 2, 15, 0, 0, 0, time.UTC)
	cost := func() int64 {
		p, ok := b.Provider(t.Context(), "up")
		if !ok || p.CostToday == nil {
			return -1
		}
		return *p.CostToday
	}
	if cost() != -1 {
		t.Error("without a log there is a cost")
	}
	log := new(spentLog)
	if b.RequestLog = log; cost() != 7 {
		t.Errorf("the cost is %d", cost())
	}
	if from := log.asked[0].From; len(log.asked) != 1 || !from.Equal(time.Date(2026, 5, 2, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("asked %v", log.asked)
	}
	b.at = b.at.Add(14 * time.Second)
	if cost(); len(log.asked) != 1 {
		t.Error("the log is asked again within 15 seconds")
	}
	log.err = errors.New("slow")
	if b.at = b.at.Add(time.Second); cost() != -1 || len(log.asked) != 2 {
		t.Error("a cost that cannot be read is shown")
	}
	log.err, log.off = nil, true
	if b.at = b.at.Add(time.Minute); cost() != -1 || len(log.asked) != 2 {
		t.Error("a log that is switched off has a cost")
	}
}
