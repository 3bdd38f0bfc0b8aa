/**
 * Why no database can be made on this machine's PostgreSQL, in sentences that a person can act on. `unavailable`: it does
 * not run or lets nobody in; `refused`: what is there already is not ours to change.
 */
export class LocalDatabaseError extends Error {
  override readonly name = 'LocalDatabaseError';
  readonly reason: 'unavailable' | 'refused';

  constructor(reason: 'unavailable' | 'refused', message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}
