package pglog_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"stagedoor/state/journal/postgres"
	"stagedoor/state/requestlog"
	"stagedoor/state/requestlog/logtest"
	"stagedoor/state/requestlog/pglog"
	"stagedoor/state/statetest/pgserver"
)

func TestMain(m *testing.M) { os.Exit(pgserver.Main(m)) }

// exec runs statements as an administrator of the database does.
func exec(t testing.TB, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatal(err)
	}
}

// empty returns the address of the shared server, whose log is empty.
func empty(t testing.TB) string {
	t.Helper()
	url := pgserver.Shared(t).URL()
	exec(t, url, "DROP TABLE IF EXISTS stagedoor.request_log, stagedoor.request_minute, stagedoor.request_spent")
	return url
}

// join returns the store of a node.
func join(t testing.TB, url, node string) *postgres.Store {
	t.Helper()
	store, err := postgres.Open(t.Context(), url, postgres.Options{Node: node, Several: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// open returns the log of a node, whose searches go all ways among a thousand records.
func open(t testing.TB, url, node string, b *logtest.Bounds) *pglog.Log {
	t.Helper()
	log, err := pglog.Open(join(t, url, node), pglog.Options{Node: node, Now: func() time.Time { return b.Now },
		Limits: func() requestlog.Limits { return b.Limits }}.Searching(100, 50, 300))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

func TestTheDatabaseConforms(t *testing.T) {
	logtest.Run(t, logtest.Store{Place: empty,
		Open: func(t testing.TB, url string, b *logtest.Bounds) requestlog.Store {
			log := open(t, url, "", b)
			return requestlog.Store{Reader: log, Writer: log}
		}})
}

func TestARecordOfOneNodeIsFoundOnAnother(t *testing.T) {
	url, b := empty(t), logtest.NewBounds()
	one, two := open(t, url, "gw-1", b), open(t, url, "gw-2", b)
	logtest.Fill(t, one, 0, 3)
	logtest.Fill(t, two, 3, 5)
	logtest.Fill(t, two, 0, 1) // in the same microsecond as a record of the other
	for text, want := range map[string][]string{
		"":                   {"req_000004", "req_000003", "req_000002", "req_000001", "req_000000", "req_000000"},
		"node:GW-1":          {"req_000002", "req_000001", "req_000000"},
		"node:gw-2 user:bob": {"req_000004", "req_000000"}, "node:gw": nil} {
		for _, log := range []*pglog.Log{one, two} {
			if got := logtest.Find(t, log, requestlog.Query{}, text); !slices.Equal(got, want) {
				t.Errorf("%q finds %v, want %v", text, got, want)
			}
		}
	}
	nodes := map[string]int{}
	if err := one.Find(t.Context(), &requestlog.Query{Limit: 10}, func(r *requestlog.Record) bool {
		nodes[r.Node]++
		return true
	}); err != nil || nodes["gw-1"] != 3 || nodes["gw-2"] != 3 {
		t.Errorf("records by node: %v, %v", nodes, err)
	}
	bars, err := two.Count(t.Context(), "user:bob", logtest.Start, logtest.Start.Add(time.Minute), time.Hour)
	if err != nil || bars[0].All != 4 {
		t.Errorf("bob has %+v, %v", bars, err)
	}
}

// Two nodes may take the same place: in a microsecond of both, and with the same number.
func TestRecordsOfOneMicrosecondAreAllKept(t *testing.T) {
	url, b := empty(t), logtest.NewBounds()
	one, two := open(t, url, "gw-1", b), open(t, url, "gw-2", b) // which number alike, because their clocks stand still
	for _, log := range []*pglog.Log{one, two} {
		batch := make([]requestlog.Record, 300)
		for i := range batch {
			batch[i] = logtest.Record(1)
		}
		if err := log.Append(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	if got := logtest.Find(t, one, requestlog.Query{}, "user:anna"); len(got) != 600 {
		t.Errorf("%d records are kept, want 600", len(got))
	}
}

func TestALogThatIsSwitchedOffIsEmptyForAllNodes(t *testing.T) {
	url, b := empty(t), logtest.NewBounds()
	one, store := open(t, url, "gw-1", b), join(t, url, "gw-2")
	if err := pglog.Remove(t.Context(), store); err != nil {
		t.Errorf("without tables: %v", err)
	}
	logtest.Fill(t, one, 0, 10)
	if err := pglog.Remove(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	logtest.Fill(t, one, 10, 12)
	if got := logtest.Find(t, one, requestlog.Query{}, ""); len(got) != 2 {
		t.Errorf("found %v", got)
	}
	bars, err := one.Count(t.Context(), "", logtest.Start, logtest.Start.Add(time.Minute), time.Hour)
	if err != nil || bars[0].All != 2 {
		t.Errorf("%+v, %v", bars, err)
	}
}

func TestOneNodeRemovesOldRecordsAtATime(t *testing.T) {
	url, b := empty(t), logtest.NewBounds()
	log := open(t, url, "gw-1", b)
	logtest.Fill(t, log, 0, 5)
	b.Now = b.Now.Add(logtest.Month.Keep)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	left := func() (n int) {
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM stagedoor.request_log").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if _, err := conn.Exec(t.Context(), "SELECT pg_advisory_lock($1)", int64(pglog.PruneLock)); err != nil {
		t.Fatal(err)
	}
	if more, err := log.Prune(t.Context()); more || err != nil || left() != 5 {
		t.Errorf("while another node prunes: %t, %v, %d are left", more, err, left())
	}
	if _, err := conn.Exec(t.Context(), "SELECT pg_advisory_unlock_all()"); err != nil {
		t.Fatal(err)
	}
	if more, err := log.Prune(t.Context()); more || err != nil || left() != 0 {
		t.Errorf("afterwards: %t, %v, %d are left", more, err, left())
	}
}

func TestTheLogGoesOnAfterTheDatabaseWasAway(t *testing.T) {
	url, b := empty(t), logtest.NewBounds()
	proxy := pgserver.NewProxy(t, pgserver.Shared(t))
	log := open(t, proxy.URL(), "gw-1", b)
	logtest.Fill(t, log, 0, 5)
	proxy.Set(pgserver.Cut)
	if err := log.Append(t.Context(), []requestlog.Record{logtest.Record(5)}); err == nil {
		t.Error("a record is written without a database")
	}
	proxy.Set(pgserver.None)
	logtest.Fill(t, log, 6, 8)
	if got := logtest.Find(t, log, requestlog.Query{}, ""); len(got) != 7 {
		t.Errorf("found %v", got)
	}
	// The connections break while they are not in use, as when the database is started again.
	exec(t, url, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'stagedoor gw-1'`)
	logtest.Fill(t, log, 8, 9)
	// An operator has removed the tables.
	exec(t, url, "DROP TABLE stagedoor.request_log, stagedoor.request_minute, stagedoor.request_spent")
	logtest.Fill(t, log, 9, 10)
	if got := logtest.Find(t, log, requestlog.Query{}, ""); !slices.Equal(got, []string{"req_000009"}) {
		t.Errorf("found %v in the new tables", got)
	}
}

// server returns a server for measurements, which cleans up as one of an operator does, and its log.
func server(b *testing.B) (url string, log requestlog.Store) {
	s := pgserver.New(b, "autovacuum=on", "shared_buffers=128MB", "max_wal_size=1GB")
	opened, err := pglog.Open(join(b, s.URL(), "gw-1"), pglog.Options{Node: "gw-1",
		Now:    func() time.Time { return logtest.Start.Add(time.Hour) },
		Limits: func() requestlog.Limits { return logtest.Month }})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { opened.Close() })
	return s.URL(), requestlog.Store{Reader: opened, Writer: opened}
}

func BenchmarkSearch(b *testing.B) {
	url, log := server(b)
	logtest.BenchmarkSearch(b, log, func() { exec(b, url, "VACUUM ANALYZE") }, func() (size int64) {
		conn, err := pgx.Connect(b.Context(), url)
		if err == nil {
			defer conn.Close(b.Context())
			err = conn.QueryRow(b.Context(), "SELECT pg_total_relation_size('stagedoor.request_log')").Scan(&size)
		}
		if err != nil {
			b.Fatal(err)
		}
		return size
	})
}

func BenchmarkAppend(b *testing.B) {
	_, log := server(b)
	logtest.BenchmarkAppend(b, log)
}

// TestANodeWhoseClockIsAheadRemovesNothingTooEarly: the database's clock decides then, so that the log of the others
// stays.
func TestANodeWhoseClockIsAheadRemovesNothingTooEarly(t *testing.T) {
	url, now := empty(t), time.Now()
	logs := map[time.Duration]*pglog.Log{}
	for _, ahead := range []time.Duration{0, 2 * logtest.Month.Keep} {
		log, err := pglog.Open(join(t, url, "gw"+ahead.String()), pglog.Options{Node: "gw" + ahead.String(),
			Now:    func() time.Time { return now.Add(ahead) },
			Limits: func() requestlog.Limits { return logtest.Month }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { log.Close() })
		logs[ahead] = log
	}
	records := []requestlog.Record{{Began: now.Add(-time.Hour), ID: "new"},
		{Began: now.Add(-logtest.Month.Keep - time.Hour), ID: "old"}}
	if err := logs[0].Append(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	if _, err := logs[2*logtest.Month.Keep].Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := logtest.Find(t, logs[0], requestlog.Query{}, ""); !slices.Equal(got, []string{"new"}) {
		t.Errorf("left are %v", got)
	}
}

// TestABrokenRecordDoesNotHideTheOthers: it is listed as one that cannot be read, also in the middle of a page.
func TestABrokenRecordDoesNotHideTheOthers(t *testing.T) {
	url, b := empty(t), logtest.NewBounds()
	log := open(t, url, "gw-1", b)
	logtest.Fill(t, log, 0, 3)
	exec(t, url, `UPDATE stagedoor.request_log SET entry = '\x7b22' WHERE at =
		(SELECT at FROM stagedoor.request_log ORDER BY at OFFSET 1 LIMIT 1)`)
	var got []string
	err := log.Find(t.Context(), &requestlog.Query{Limit: 10}, func(r *requestlog.Record) bool {
		if again, err := log.Get(t.Context(), r.At, r.Owner); err != nil || again.ID != r.ID || again.Began != r.Began {
			t.Errorf("%d is %+v, %v", r.At, again, err)
		}
		got = append(got, r.ID+r.Code)
		return true
	})
	if want := []string{"req_000002", "unreadable", "req_000000"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("found %q, %v", got, err)
	}
}
