package postgres_test

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"stagedoor/state/journal"
	"stagedoor/state/journal/conformance"
	"stagedoor/state/journal/postgres"
	"stagedoor/state/statetest/pgserver"
)

var ctx = context.Background()

func TestMain(m *testing.M) { os.Exit(pgserver.Main(m)) }

// empty removes all records of a server, and returns its address.
func empty(t testing.TB, server *pgserver.Server) string {
	t.Helper()
	exec(t, server, removeAll)
	return server.URL()
}

const removeAll = `DELETE FROM stagedoor.log; DELETE FROM stagedoor.rec; DELETE FROM stagedoor.large;
	DELETE FROM stagedoor.node;
	UPDATE stagedoor.head SET lsn = 0, tag = (random() * 9e18)::bigint, format = 1;
	INSERT INTO stagedoor.log SELECT lsn, tag, '', 0, '' FROM stagedoor.head`

// exec runs statements as an administrator of the database does.
func exec(t testing.TB, server *pgserver.Server, sql string) {
	t.Helper()
	if admin == nil || admin.Ping(ctx) != nil {
		conn, err := pgx.Connect(ctx, server.URL())
		if err != nil {
			t.Fatal(err)
		}
		admin = conn
	}
	if _, err := admin.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
		t.Fatal(err)
	}
}

// admin is the connection of exec, which all tests share because a new one takes time.
var admin *pgx.Conn

func open(t testing.TB, url string, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(ctx, url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

var prepared bool // the tables are there

// server returns the shared server with the tables in it.
func server(t testing.TB) *pgserver.Server {
	t.Helper()
	s := pgserver.Shared(t)
	if !prepared {
		open(t, s.URL(), postgres.Options{Node: "first", Several: true}).Close()
		prepared = true
	}
	return s
}

func TestPostgresConforms(t *testing.T) {
	server := server(t)
	// Some tests compare two stores, so there are two databases, which take turns.
	exec(t, server, "CREATE DATABASE other")
	other, err := pgx.Connect(ctx, server.URLOf("other"))
	if err != nil {
		t.Fatal(err)
	}
	defer exec(t, server, "DROP DATABASE other")
	defer other.Close(ctx)
	open(t, server.URLOf("other"), postgres.Options{Node: "first"}).Close()
	n := 0
	conformance.Run(t, conformance.Store{New: func(t testing.TB) journal.Store {
		if n++; n%2 == 0 {
			if _, err := other.PgConn().Exec(ctx, removeAll).ReadAll(); err != nil {
				t.Fatal(err)
			}
			return open(t, server.URLOf("other"), postgres.Options{Node: "a", Several: true})
		}
		return open(t, empty(t, server), postgres.Options{Node: "a", Several: true})
	}})
}

func TestPostgresConformsAsShared(t *testing.T) {
	server := server(t)
	conformance.RunShared(t, func(t testing.TB) conformance.Cluster {
		url := empty(t, server)
		var nodes []*postgres.Store
		return conformance.Cluster{
			Join: func(name string) journal.Shared {
				s := open(t, url, postgres.Options{Node: name, Several: true})
				nodes = append(nodes, s)
				return s
			},
			Trim: func() {
				for _, n := range nodes {
					if err := n.Members().Beat(ctx); err != nil {
						t.Fatal(err)
					}
				}
				if err := nodes[0].Tidy(ctx); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}
