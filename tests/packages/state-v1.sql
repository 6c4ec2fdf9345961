-- A state database of schema version 1, the first: a function and an asynchronous invocation of it.
CREATE TABLE functions (
  name TEXT PRIMARY KEY NOT NULL,
  description TEXT NOT NULL, role TEXT NOT NULL, handler TEXT NOT NULL, runtime TEXT NOT NULL,
  memory_mib INTEGER NOT NULL, timeout_seconds INTEGER NOT NULL, ephemeral_storage_mib INTEGER NOT NULL,
  environment TEXT NOT NULL, tags TEXT NOT NULL,
  code_sha256 TEXT NOT NULL, code_bytes INTEGER NOT NULL, code_path TEXT NOT NULL,
  revision_id TEXT NOT NULL, last_modified_ms INTEGER NOT NULL, reserved_concurrency INTEGER) STRICT;
CREATE TABLE events (
  request_id TEXT PRIMARY KEY NOT NULL, function TEXT NOT NULL,
  payload BLOB NOT NULL, client_context TEXT NOT NULL,
  attempts INTEGER NOT NULL, accepted_ms INTEGER NOT NULL, not_before_ms INTEGER NOT NULL) STRICT;
CREATE TABLE dead_letters (
  id INTEGER PRIMARY KEY, request_id TEXT UNIQUE NOT NULL, function TEXT NOT NULL,
  payload BLOB NOT NULL, error_type TEXT NOT NULL, error_message TEXT NOT NULL,
  attempts INTEGER NOT NULL, accepted_ms INTEGER NOT NULL, failed_ms INTEGER NOT NULL) STRICT;
INSERT INTO functions VALUES
  ('from-version-1', 'kept since the first release', 'role', 'bootstrap', 'provided.al2023', 256, 30, 512, '{}', '{}',
   'c2hh', 3, 'code/abc', 'revision', 7, 2);
PRAGMA application_id = 0x464c4431;
PRAGMA user_version = 1;
