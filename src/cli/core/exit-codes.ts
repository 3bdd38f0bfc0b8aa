/**
 * The exit statuses of the program, for scripts and service managers. The numbers are those of BSD's sysexits.h where
 * one has a fitting meaning. A service manager must not restart the program after 76, 77 and 78, because a repeat
 * cannot succeed.
 */
export const exitCodes = {
  ok: 0,
  /**
   * The operation was refused or failed, `klatch doctor` found errors, a ping was not delivered, or a backup cannot be
   * created or used. Standard error has the reason.
   */
  operationFailed: 1,
  /** The command line is wrong or incomplete (EX_USAGE). */
  usage: 64,
  /** No server runs, or the database does not answer or cannot be used (EX_UNAVAILABLE). */
  unavailable: 69,
  /** The program has a bug (EX_SOFTWARE). */
  internal: 70,
  /** The port cannot be listened on, or a file or folder cannot be written (EX_CANTCREAT). */
  cannotCreate: 73,
  /** The result could not be written to standard output (EX_IOERR). */
  outputLost: 74,
  /** Another process uses the data directory, or a database that must not be in use (EX_TEMPFAIL). */
  dataDirInUse: 75,
  /** The database has the schema of a newer Klatch, or a schema that this program does not know (EX_PROTOCOL). */
  incompatibleSchema: 76,
  /**
   * Why an operation is not permitted (EX_NOPERM):
   * - the secret does not open this database
   * - the user may not connect to the running server
   * - another user may have created the folder of its control socket
   * - root would run the server with the configuration of the service
   */
  notPermitted: 77,
  /** There is no configuration, or it still contains placeholders, or it has problems (EX_CONFIG). */
  notConfigured: 78,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** The meanings of all statuses, as sentences for the documents. */
export const exitCodeMeanings: Readonly<Record<ExitCode, string>> = {
  0: 'done',
  1: 'it was refused or it failed, or `klatch doctor` found errors; the reason is on standard error',
  64: 'the command line is wrong, or `setup` lacks an answer',
  69: 'the server or the database cannot be reached',
  70: 'a failure of Klatch itself',
  73: 'the port, a file or a folder cannot be used',
  74: 'standard output was closed',
  75: 'another Klatch uses the data directory, or the database that is to be resealed',
  76: 'a newer Klatch made the database, or a build whose schema this one cannot read',
  77: '`secret` is not the one of this database, the control socket is closed to this user or in a folder that another user controls, root may not serve with `/etc/klatch`, or only root may make a local database',
  78: 'not configured, or the configuration is wrong',
};
