/**
 * The reason why Klatch cannot create a database on this machine's PostgreSQL, in sentences that an administrator can
 * act on. `unavailable`: the server does not run or rejects the login; `refused`: Klatch must not change what exists
 * there.
 */
export class LocalDatabaseError extends Error {
  override readonly name = 'LocalDatabaseError';
  readonly reason: 'unavailable' | 'refused';

  constructor(reason: 'unavailable' | 'refused', message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}
