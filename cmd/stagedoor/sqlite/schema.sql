-- at is the time in microseconds, shifted by ten bits, and a number. The numbers beside entry are those that a search
-- compares. The full text is in words, which has no copy of it.
CREATE TABLE requests (at INTEGER PRIMARY KEY, owner TEXT NOT NULL, cost INTEGER NOT NULL, took INTEGER NOT NULL,
  first INTEGER NOT NULL, queued INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL,
  attempts INTEGER NOT NULL, entry BLOB NOT NULL) STRICT;
CREATE VIRTUAL TABLE words USING fts5(id, user, key, model, provider, api, error, loss, marks,
  content = '', contentless_delete = 1, tokenize = 'unicode61');
CREATE TABLE minutes (owner TEXT NOT NULL, minute INTEGER NOT NULL, requests INTEGER NOT NULL, failed INTEGER NOT NULL,
  slow INTEGER NOT NULL, lossy INTEGER NOT NULL, PRIMARY KEY (owner, minute)) STRICT, WITHOUT ROWID;
CREATE INDEX old_minutes ON minutes (minute);
