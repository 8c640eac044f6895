-- Files: pictures with addresses, and uploads for videos. They are not part of the log.
CREATE TABLE IF NOT EXISTS stagedoor.file (
	id      text PRIMARY KEY,
	media   text NOT NULL,
	owner   text NOT NULL,
	expires bigint NOT NULL, -- in seconds since 1970, by the clock of the node
	size    bigint, -- NULL while the file is written
	added   timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Rows of 1 MiB, so that neither a node nor the database ever holds a whole file.
CREATE TABLE IF NOT EXISTS stagedoor.file_part (
	id    text NOT NULL REFERENCES stagedoor.file (id) ON DELETE CASCADE,
	part  bigint NOT NULL,
	value bytea NOT NULL,
	PRIMARY KEY (id, part)
);
-- Pictures do not get smaller, and a range of a value that is not compressed is read without the rest of it.
ALTER TABLE stagedoor.file_part ALTER value SET STORAGE EXTERNAL;
