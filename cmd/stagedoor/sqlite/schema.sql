-- Records are in blocks (block.go). Places are the time in microseconds, shifted by ten bits, and a number. The records
-- of a block are in the sums below if summed is 1 (sums.go).
CREATE TABLE blocks (last INTEGER PRIMARY KEY, first INTEGER NOT NULL, base INTEGER NOT NULL, rows BLOB NOT NULL,
  ids BLOB NOT NULL, entries BLOB NOT NULL, summed INTEGER NOT NULL DEFAULT 1) STRICT;
CREATE INDEX blocks_by_first ON blocks (first);
CREATE INDEX blocks_to_sum ON blocks (last) WHERE summed = 0;
-- The names and the outcome of requests (kinds.go). The full text of kinds is in words, which has no copy of it. used is the
-- minute since 1970 in which the last request of the kind began.
CREATE TABLE kinds (kind INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, used INTEGER NOT NULL, owner TEXT NOT NULL,
  names BLOB NOT NULL) STRICT;
CREATE INDEX kinds_by_use ON kinds (used);
CREATE VIRTUAL TABLE words USING fts5(user, key, model, provider, api, error, loss, marks,
  content = '', contentless_delete = 1, tokenize = 'unicode61');
-- The numbers of requests in each minute, for charts.
CREATE TABLE minutes (owner TEXT NOT NULL, minute INTEGER NOT NULL, requests INTEGER NOT NULL, failed INTEGER NOT NULL,
  slow INTEGER NOT NULL, lossy INTEGER NOT NULL, PRIMARY KEY (owner, minute)) STRICT, WITHOUT ROWID;
CREATE INDEX old_minutes ON minutes (minute);
-- What was used in each hour, for sums over long times.
CREATE TABLE spent (hour INTEGER NOT NULL, owner TEXT NOT NULL, key TEXT NOT NULL, model TEXT NOT NULL,
  provider TEXT NOT NULL, app TEXT NOT NULL, requests INTEGER NOT NULL, input INTEGER NOT NULL,
  output INTEGER NOT NULL, cost INTEGER NOT NULL, PRIMARY KEY (hour, owner, key, model, provider, app)) STRICT,
  WITHOUT ROWID;
