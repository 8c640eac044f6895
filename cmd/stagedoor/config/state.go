package config

import "time"

// Backups are incremental backups of the store that a running gateway makes.
type Backups struct {
	Dir   string   `yaml:"dir" doc:"directory for incremental backups of the store; none: no backups"`
	Every Duration `yaml:"every" doc:"time between two backups"`
	Keep  int      `yaml:"keep" doc:"number of backups that are kept, together with the earlier files that they need"`
}

// Ledger bounds the history of money.
type Ledger struct {
	Keep Duration `yaml:"keep" doc:"time for which single entries and receipts are kept before they are merged into sums; 0: forever"`
}

// RequestLog bounds the log of requests and says where it is.
type RequestLog struct {
	Keep  Duration `yaml:"keep" doc:"time for which requests stay in the log at /requests; 0: no log"`
	MiB   int      `yaml:"mib" doc:"size of the log in MiB, of all gateways together; the oldest requests are removed first"`
	Store string   `yaml:"store" doc:"place of the log: the database of cluster.store, or a file; default: database"`
}

// Recordings bound what is kept of keys that are recorded.
type Recordings struct {
	Keep      Duration `yaml:"keep" doc:"time for which a recorded request and its reply are kept; 0: no key is recorded"`
	MiB       int      `yaml:"mib" doc:"size of all recordings in MiB; the oldest are removed first"`
	Exchanges int      `yaml:"exchanges" doc:"number of recorded requests that are kept"`
}

// The places of the log of requests.
const (
	requestsInDatabase = "database"
	requestsInFile     = "file"
)

// RequestsInDatabase reports whether the log of requests is in the database of the cluster.
func (c *Config) RequestsInDatabase() bool {
	return c.Cluster.Store != "" && c.Requests.Store != requestsInFile
}

// Audit bounds the audit log.
type Audit struct {
	Keep    Duration `yaml:"keep" doc:"time for which changes stay in the audit log; 0: forever"`
	Records int      `yaml:"records" doc:"number of changes in the audit log, beside those of the last 30 days"`
}

var (
	defaultAudit      = Audit{Keep: Duration(400 * 24 * time.Hour), Records: 500_000}
	defaultRequestLog = RequestLog{Keep: Duration(30 * 24 * time.Hour), MiB: 1024}

	defaultRecordings = Recordings{Keep: Duration(72 * time.Hour), MiB: 256, Exchanges: 10_000}

	defaultBackups = Backups{Every: Duration(15 * time.Minute), Keep: 4}
	defaultLedger  = Ledger{Keep: Duration(90 * 24 * time.Hour)}
)

// The bounds of the settings. A copy reads the whole store, so copies are not made more often than each minute.
const (
	minBackupEvery   = Duration(time.Minute)
	maxBackupKeep    = 10_000
	minLedgerKeep    = Duration(24 * time.Hour)
	minRequestKeep   = Duration(time.Hour)
	minRequestMiB    = 16
	maxRequestMiB    = 1 << 20
	minRecordingKeep = Duration(time.Minute)
	maxRecordingMiB  = 1 << 20
	maxExchanges     = 100_000
	minAuditKeep     = Duration(24 * time.Hour)
	minAudit         = 1000
	maxAudit         = 100_000_000
)

// checkState checks backups, the ledger's history, the log of requests and the audit log.
func (c *Config) checkState(d *decoder) {
	b := &c.Backups
	if b.Dir != "" && c.Data == "memory" && c.Cluster.Store == "" {
		d.at("backups.dir", "expected none: data: memory has nothing to copy")
	}
	if b.Every < minBackupEvery {
		d.at("backups.every", "expected 1m or more")
	}
	if b.Keep < 1 || b.Keep > maxBackupKeep {
		d.at("backups.keep", "expected 1 to %d", maxBackupKeep)
	}
	if k := c.Ledger.Keep; k != 0 && k < minLedgerKeep {
		d.at("ledger.keep", "expected 24h or more, or 0: for ever")
	}
	if k := c.Requests.Keep; k != 0 && k < minRequestKeep {
		d.at("request_log.keep", "expected 1h or more, or 0: there is no log")
	}
	switch at := c.Requests.Store; {
	case at != "" && at != requestsInDatabase && at != requestsInFile:
		d.at("request_log.store", "expected database or file")
	case at == requestsInDatabase && c.Cluster.Store == "":
		d.at("request_log.store", "expected file or none, because without cluster.store there is no database")
	}
	if k := c.Recorded.Keep; k != 0 && k < minRecordingKeep {
		d.at("recordings.keep", "expected 1m or more, or 0: nothing is kept")
	}
	if m := c.Recorded.MiB; m < 1 || m > maxRecordingMiB {
		d.at("recordings.mib", "expected 1 to %d", maxRecordingMiB)
	}
	if n := c.Recorded.Exchanges; n < 1 || n > maxExchanges {
		d.at("recordings.exchanges", "expected 1 to %d", maxExchanges)
	}
	if k := c.Audit.Keep; k != 0 && k < minAuditKeep {
		d.at("audit.keep", "expected 24h or more, or 0: for ever")
	}
	if n := c.Audit.Records; n < minAudit || n > maxAudit {
		d.at("audit.records", "expected %d to %d", minAudit, maxAudit)
	}
	if m := c.Requests.MiB; m < minRequestMiB || m > maxRequestMiB {
		d.at("request_log.mib", "expected %d to %d", minRequestMiB, maxRequestMiB)
	}
}
