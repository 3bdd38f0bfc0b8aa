/** The reasons why the private database server could not start or stop. */
export const embeddedErrorCodes = [
  'bin-dir-invalid',
  'programs-missing',
  'version-unsupported',
  'version-mismatch',
  'cluster-invalid',
  'cluster-linked',
  'owner-mismatch',
  'folder-closed',
  'namespace-refused',
  'socket-folder-invalid',
  'file-system',
  'create-failed',
  'start-failed',
  'start-timeout',
  'stop-timeout',
  'upgrade-unfinished',
] as const;

type EmbeddedErrorCode = (typeof embeddedErrorCodes)[number];

/**
 * A failure of the private database server. `message` is one or more sentences that an administrator can act on: they
 * name the folder and the configuration key. `code` is stable, for programs.
 */
export class EmbeddedError extends Error {
  override readonly name = 'EmbeddedError';
  readonly code: EmbeddedErrorCode;

  constructor(code: EmbeddedErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
