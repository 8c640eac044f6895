-- at is the time in microseconds, shifted by ten bits, and a number. The numbers beside entry are those that a search
-- compares, and words are the lexemes of the record.
CREATE TABLE IF NOT EXISTS stagedoor.request_log (
	at       bigint PRIMARY KEY,
	cost     bigint NOT NULL,
	took     bigint NOT NULL,
	first    bigint NOT NULL,
	queued   bigint NOT NULL,
	input    bigint NOT NULL,
	output   bigint NOT NULL,
	attempts bigint NOT NULL,
	owner    text NOT NULL,
	entry    bytea NOT NULL,
	words    tsvector NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
-- Words of new records wait in a list, which searches read whole. It is kept short.
CREATE INDEX IF NOT EXISTS request_words ON stagedoor.request_log USING gin (words) WITH (gin_pending_list_limit = 1024);

-- Each node has rows of its own, so that no node waits for another one.
CREATE TABLE IF NOT EXISTS stagedoor.request_minute (
	owner    text NOT NULL,
	minute   bigint NOT NULL,
	node     text NOT NULL,
	requests bigint NOT NULL,
	failed   bigint NOT NULL,
	slow     bigint NOT NULL,
	lossy    bigint NOT NULL,
	bytes    bigint NOT NULL, -- of all records of the minute, in the rows of no owner
	PRIMARY KEY (owner, minute, node)
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS request_old_minutes ON stagedoor.request_minute (minute);

-- What was used in each hour, for sums over long times.
CREATE TABLE IF NOT EXISTS stagedoor.request_spent (
	hour     bigint NOT NULL,
	owner    text NOT NULL,
	key      text NOT NULL,
	model    text NOT NULL,
	provider text NOT NULL,
	app      text NOT NULL,
	node     text NOT NULL,
	requests bigint NOT NULL,
	input    bigint NOT NULL,
	output   bigint NOT NULL,
	cost     bigint NOT NULL,
	PRIMARY KEY (hour, owner, key, model, provider, app, node)
) WITH (fillfactor = 70);
