/** The kind of a message's sender, for its readers. An integration's messages are `webhook`. */
export type SenderKind = 'user' | 'bot' | 'webhook';

/** What an account may do in the installation as a whole. */
export type InstallationRole = 'admin' | 'user' | 'bot';

/** What a member may do in a group. */
export type GroupRole = 'owner' | 'admin' | 'member';
