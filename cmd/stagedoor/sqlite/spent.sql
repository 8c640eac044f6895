-- What was used in each hour, for sums over long times.
CREATE TABLE spent (hour INTEGER NOT NULL, owner TEXT NOT NULL, key TEXT NOT NULL, model TEXT NOT NULL,
  provider TEXT NOT NULL, app TEXT NOT NULL, requests INTEGER NOT NULL, input INTEGER NOT NULL,
  output INTEGER NOT NULL, cost INTEGER NOT NULL, PRIMARY KEY (hour, owner, key, model, provider, app)) STRICT,
  WITHOUT ROWID;
