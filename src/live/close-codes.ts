/** The code with which the server closes a connection. On a TCP connection the last line holds the code. */
export const closeCodes = {
  /** The client closed its side, and has received its answers. */
  normal: 1000,
  stopping: 1001,
  /** The send queue exceeds its bound: the client reconnects and continues from what it has. */
  slow_consumer: 4000,
  unauthenticated: 4001,
  session_ended: 4002,
  too_many_connections: 4003,
  too_large: 4004,
  invalid_json: 4005,
  rate_limited: 4006,
  ping_timeout: 4007,
  /** The log began a new epoch: sent changes may be lost, and their revs are given out again. */
  changes_lost: 4008,
} as const;

export type CloseReason = keyof typeof closeCodes;

/** Sentences for people, of at most 123 bytes: a close frame of WebSocket holds no more. */
export const closeMessages: Readonly<Record<CloseReason, string>> = {
  normal: 'That was all',
  stopping: 'The server is stopping; please connect again',
  slow_consumer: 'You read more slowly than there is to read: connect again and follow from what you have',
  unauthenticated: 'Say who you are first: live.authenticate',
  session_ended: 'This session has ended: sign in again',
  too_many_connections: 'There are too many connections; please try again later',
  too_large: 'This is longer than a message to the server may be',
  invalid_json: 'This is not one JSON text in UTF-8, or one that is nested too deeply',
  rate_limited: 'Too many requests; please wait before you connect again',
  ping_timeout: 'There was no sign of life',
  changes_lost: 'The server lost changes: connect again and follow from what you have',
};

/** The notification that carries the reason before the connection ends. */
export function sessionEndedNotification(reason: CloseReason): string {
  const params = { reason: closeMessages[reason], code: closeCodes[reason] };
  return JSON.stringify({ jsonrpc: '2.0', method: 'session.ended', params });
}
