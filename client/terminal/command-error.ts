/** What kept a command from its work. The program around the commands makes an exit status of each. */
type FailureReason = 'operationFailed' | 'usage' | 'unavailable' | 'notPermitted' | 'notConfigured';

/** A command of the chat cannot do its work; `message` is a sentence for whoever ran it. */
export class ChatCommandError extends Error {
  override readonly name = 'ChatCommandError';
  readonly reason: FailureReason;

  constructor(reason: FailureReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}
