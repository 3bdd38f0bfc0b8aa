/**
 * The server's settings for a small durable installation. Each start passes them on the command line, so a new version
 * of Klatch can change them without touching the cluster's files. `overrides` overrides all of them.
 */
export function serverSettingArguments(
  socketDir: string,
  port: number,
  overrides: Readonly<Record<string, string>>,
): string[] {
  const settings: Record<string, string> = {
    // The server is reachable only through a socket. `unix_socket_directories` is a list: quotes keep commas and spaces
    // of a path together.
    listen_addresses: '',
    port: String(port),
    unix_socket_directories: `"${socketDir.replaceAll('"', '""')}"`,
    unix_socket_permissions: '0700',

    // With these settings, acknowledged data survives a power cut.
    fsync: 'on',
    synchronous_commit: 'on',
    full_page_writes: 'on',
    // `replica` allows a backup while the server runs (pg_basebackup), which needs two senders.
    wal_level: 'replica',
    max_wal_senders: '2',
    max_logical_replication_workers: '0',
    max_wal_size: '256MB',

    // One Klatch process uses about fifteen connections. While a new process takes over from an old one there are twice
    // as many, and an administrator needs some.
    max_connections: '40',
    shared_buffers: '128MB',
    // To compile a query takes longer than any query of Klatch.
    jit: 'off',

    timezone: 'UTC',
    log_timezone: 'UTC',

    // The server logs to stderr, which Klatch redirects to a file. No user data may appear there: no statements, no
    // parameters, and with `terse` no DETAIL lines either, which quote rows ("Key (name)=(…) already exists").
    logging_collector: 'off',
    log_destination: 'stderr',
    log_statement: 'none',
    log_min_duration_statement: '-1',
    log_min_error_statement: 'panic',
    log_error_verbosity: 'terse',
    log_checkpoints: 'off',
    log_autovacuum_min_duration: '-1',
    ...overrides,
  };
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}
