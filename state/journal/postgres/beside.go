package postgres

import (
	"context"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Connections returns up to most connections to the database for what is kept in it beside the log, so that this never
// takes one that the log needs. They have the given settings of the database, such as statement_timeout, and are made
// when they are used first. The caller closes the pool.
func (s *Store) Connections(most int32, settings map[string]string) (*pgxpool.Pool, error) {
	config := s.pool.Config()
	config.MaxConns = most
	maps.Copy(config.ConnConfig.RuntimeParams, settings)
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("connect to the shared store: %w", err)
	}
	return pool, nil
}

// MakeTables makes tables beside the log with sql, under the lock under which nodes join, unless the condition present
// holds. Several nodes may call it at the same time. The lock is needed because two CREATE TABLE IF NOT EXISTS at the
// same time can still collide in PostgreSQL. An error leaves no table, because all of it is one transaction.
func MakeTables(ctx context.Context, conn *pgx.Conn, present, sql string) error {
	return pgx.BeginTxFunc(ctx, conn, short, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(schemaLock)); err != nil {
			return err
		}
		var there bool
		err := tx.QueryRow(ctx, "SELECT "+present).Scan(&there)
		if err == nil && !there {
			_, err = tx.Conn().PgConn().Exec(ctx, sql).ReadAll()
		}
		return err
	})
}
