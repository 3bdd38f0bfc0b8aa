/** Why a command failed. The program around the commands maps each reason to an exit status. */
type FailureReason = 'operationFailed' | 'usage' | 'unavailable' | 'notPermitted' | 'notConfigured';

/** A command of the chat cannot do its work; `message` is a sentence for the person who ran it. */
export class ChatCommandError extends Error {
  override readonly name = 'ChatCommandError';
  readonly reason: FailureReason;

  constructor(reason: FailureReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}
