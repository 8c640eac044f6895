-- The tables of a shared store.
CREATE SCHEMA IF NOT EXISTS stagedoor;

-- The end of the log: its number and the random tag of its last entry.
CREATE TABLE IF NOT EXISTS stagedoor.head (
	one    boolean PRIMARY KEY DEFAULT true CHECK (one),
	lsn    bigint NOT NULL,
	tag    bigint NOT NULL,
	format integer NOT NULL
) WITH (fillfactor = 50);

-- What each append did to the tables that nodes keep in memory.
CREATE TABLE IF NOT EXISTS stagedoor.log (
	lsn     bigint PRIMARY KEY,
	tag     bigint NOT NULL,
	node    text NOT NULL,
	decided bigint NOT NULL, -- in nanoseconds, by the clock of the node
	hot     bytea NOT NULL,
	added   timestamptz NOT NULL DEFAULT clock_timestamp()
);

INSERT INTO stagedoor.head
	SELECT true, 0, (random() * 9e18)::bigint, 1 WHERE NOT EXISTS (SELECT FROM stagedoor.head);
INSERT INTO stagedoor.log
	SELECT lsn, tag, '', 0, '' FROM stagedoor.head WHERE lsn = 0 ON CONFLICT DO NOTHING;

-- The processes that write. An append counts only in the epoch that is here.
CREATE TABLE IF NOT EXISTS stagedoor.node (
	id      text PRIMARY KEY,
	epoch   bigint NOT NULL,
	seq     bigint NOT NULL DEFAULT 0, -- of the node's last append, by which it finds out whether one arrived
	applied bigint NOT NULL DEFAULT 0,
	beat    timestamptz NOT NULL,
	live    boolean NOT NULL DEFAULT true -- it has not been expelled
) WITH (fillfactor = 50);
ALTER TABLE stagedoor.node ADD COLUMN IF NOT EXISTS version text NOT NULL DEFAULT '';
-- The process follows the log and waits until no other one is live. It cannot append.
ALTER TABLE stagedoor.node ADD COLUMN IF NOT EXISTS standby boolean NOT NULL DEFAULT false;
-- An operator wants the process to end. It finds this with its next beat.
ALTER TABLE stagedoor.node ADD COLUMN IF NOT EXISTS leaving boolean NOT NULL DEFAULT false;
-- The process permits other live ones beside it that permit it, too.
ALTER TABLE stagedoor.node ADD COLUMN IF NOT EXISTS several boolean NOT NULL DEFAULT false;
-- The process has one of so many equal parts of the limits that all divide, or none if it is 0.
ALTER TABLE stagedoor.node ADD COLUMN IF NOT EXISTS parts integer NOT NULL DEFAULT 0;
-- Where the process answers the others, or empty.
ALTER TABLE stagedoor.node ADD COLUMN IF NOT EXISTS address text NOT NULL DEFAULT '';

-- The newest format of the log that the process reads, if it is that of this epoch. An older program leaves both.
ALTER TABLE stagedoor.node ADD COLUMN IF NOT EXISTS reads integer NOT NULL DEFAULT 1;
ALTER TABLE stagedoor.node ADD COLUMN IF NOT EXISTS reads_epoch bigint NOT NULL DEFAULT 0;

-- Units of limits that are too small to be divided, each of which one process has at a time, or none.
CREATE TABLE IF NOT EXISTS stagedoor.unit (
	name   text NOT NULL, -- of the limit
	number integer NOT NULL,
	node   text,
	epoch  bigint,
	credit bigint NOT NULL DEFAULT 60000000000, -- in nanoseconds: what it had saved up then
	at     timestamptz NOT NULL DEFAULT clock_timestamp(), -- when it was given back
	PRIMARY KEY (name, number)
) WITH (fillfactor = 50);
-- Processes that wait for units.
CREATE TABLE IF NOT EXISTS stagedoor.want (
	name  text NOT NULL, -- of the limit
	node  text NOT NULL,
	epoch bigint NOT NULL,
	units integer NOT NULL,
	since timestamptz NOT NULL DEFAULT clock_timestamp(),
	said  timestamptz NOT NULL DEFAULT clock_timestamp(), -- the last time that the process said so
	PRIMARY KEY (name, node)
) WITH (fillfactor = 50);

-- Values that are too large to be written while other nodes wait. A record that has one refers to it.
CREATE TABLE IF NOT EXISTS stagedoor.large (
	id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	value bytea NOT NULL,
	added timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- All records. The three parts differ in how they change, which is what vacuuming depends on.
CREATE TABLE IF NOT EXISTS stagedoor.rec (
	tbl     text NOT NULL,
	key     bytea NOT NULL,
	rev     bigint NOT NULL,
	value   bytea, -- NULL if the record is large
	large   bigint REFERENCES stagedoor.large (id),
	PRIMARY KEY (tbl, key)
) PARTITION BY LIST (tbl);
CREATE TABLE IF NOT EXISTS stagedoor.rec_small PARTITION OF stagedoor.rec DEFAULT WITH (fillfactor = 80);
CREATE TABLE IF NOT EXISTS stagedoor.rec_pages PARTITION OF stagedoor.rec FOR VALUES IN ('led', 'rcpt', 'rcpthash');
CREATE TABLE IF NOT EXISTS stagedoor.rec_bodies PARTITION OF stagedoor.rec FOR VALUES IN ('resp', 'respev', 'replybody');
CREATE INDEX IF NOT EXISTS rec_large ON stagedoor.rec (large) WHERE large IS NOT NULL;

-- append makes an entry and changes the records if the log ends at the given position, and returns the new position in
-- a row without a node. Otherwise it returns the entry at that position and at most 500 newer ones, and nothing has
-- changed. No row, or another first one than that of the position, means that the log is not the one that was followed.
-- An append must have a higher number than the node's last one, so that the node can void one that may be under way.
--
-- Deletions come before puts: those of ranges and then those of single keys. A positive revision is that of the record
-- from now on, and a negative one says by how much it grows.
CREATE OR REPLACE FUNCTION stagedoor.append(
	my_node text, my_epoch bigint, my_seq bigint, at_lsn bigint, at_tag bigint, new_tag bigint, my_decided bigint,
	my_hot bytea, range_tbl text[], range_from bytea[], range_to bytea[], del_tbl text[], del_key bytea[],
	put_tbl text[], put_key bytea[], put_rev bigint[], put_value bytea[], put_large bigint[]
) RETURNS TABLE (lsn bigint, tag bigint, node text, decided bigint, hot bytea) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
	-- The lock of this row is what makes all commits one after the other.
	UPDATE stagedoor.head SET lsn = at_lsn + 1, tag = new_tag WHERE lsn = at_lsn AND tag = at_tag;
	IF NOT FOUND THEN
		RETURN QUERY SELECT l.lsn, l.tag, l.node, l.decided, l.hot FROM stagedoor.log l
			WHERE l.lsn >= at_lsn ORDER BY l.lsn LIMIT 501;
		RETURN;
	END IF;
	UPDATE stagedoor.node SET seq = coalesce(my_seq, seq)
		WHERE id = my_node AND epoch = my_epoch AND live AND seq < coalesce(my_seq, seq + 1);
	IF NOT FOUND THEN
		IF EXISTS (SELECT FROM stagedoor.node WHERE id = my_node AND epoch = my_epoch AND live) THEN
			RAISE EXCEPTION 'the node has voided this append' USING ERRCODE = 'SD002';
		END IF;
		RAISE EXCEPTION 'the epoch of the node has ended' USING ERRCODE = 'SD001';
	END IF;
	INSERT INTO stagedoor.log (lsn, tag, node, decided, hot) VALUES (at_lsn + 1, new_tag, my_node, my_decided, my_hot);
	IF cardinality(range_tbl) > 0 THEN
		DELETE FROM stagedoor.rec r USING unnest(range_tbl, range_from, range_to) AS d (t, a, z)
			WHERE r.tbl = d.t AND r.key >= d.a AND (d.z IS NULL OR r.key < d.z);
	END IF;
	IF cardinality(del_tbl) > 0 THEN
		DELETE FROM stagedoor.rec r USING unnest(del_tbl, del_key) AS d (t, k) WHERE r.tbl = d.t AND r.key = d.k;
	END IF;
	IF cardinality(put_tbl) > 0 THEN
		INSERT INTO stagedoor.rec AS r (tbl, key, rev, value, large)
			SELECT p.t, p.k, p.n, p.v, p.l FROM unnest(put_tbl, put_key, put_rev, put_value, put_large) AS p (t, k, n, v, l)
				WHERE p.n > 0
			ON CONFLICT (tbl, key) DO UPDATE SET rev = excluded.rev, value = excluded.value, large = excluded.large;
		INSERT INTO stagedoor.rec AS r (tbl, key, rev, value, large)
			SELECT p.t, p.k, -p.n, p.v, p.l FROM unnest(put_tbl, put_key, put_rev, put_value, put_large) AS p (t, k, n, v, l)
				WHERE p.n < 0
			ON CONFLICT (tbl, key) DO UPDATE SET rev = r.rev + excluded.rev, value = excluded.value, large = excluded.large;
	END IF;
	PERFORM pg_notify('stagedoor', '');
	RETURN QUERY SELECT at_lsn + 1, new_tag, NULL::text, 0::bigint, NULL::bytea;
END $$;
