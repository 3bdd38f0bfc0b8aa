import type { ExitCode } from './exit-codes.ts';

/** A failure of a command, with its exit status. `message` is one or more plain sentences, one per line. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** The exit status and the text of a failed command. */
export interface CommandFailure {
  readonly exitCode: ExitCode;
  /** The text for a person: one or more lines, without secrets. */
  readonly text: string;
}
