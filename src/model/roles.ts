/**
 * The kind of a message's sender, as readers see it. Messages that come through a group's webhook are of the kind
 * `webhook`.
 */
export type SenderKind = 'user' | 'bot' | 'webhook';

/** The rights of an account in the installation as a whole. */
export type InstallationRole = 'admin' | 'user' | 'bot';

/** The rights of a member in a group. */
export type GroupRole = 'owner' | 'admin' | 'member';
