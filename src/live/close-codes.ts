/** How a connection ended that the server closed. On tcp the code stands in the last line. */
export const closeCodes = {
  /** The client closed its side, and has its answers. */
  done: 1000,
  stopping: 1001,
  /** More waits to be sent than may: the client comes back and goes on from what it has. */
  behind: 4000,
  unauthenticated: 4001,
  sessionEnded: 4002,
  tooMany: 4003,
  tooLarge: 4004,
  notJson: 4005,
  flood: 4006,
  silent: 4007,
} as const;

export type CloseReason = keyof typeof closeCodes;

/** For people; at most 123 bytes, which is what a close frame of WebSocket holds. */
export const closeMessages: Readonly<Record<CloseReason, string>> = {
  done: 'That was all',
  stopping: 'The server is stopping; please connect again',
  behind: 'You read more slowly than there is to read: connect again and follow from what you have',
  unauthenticated: 'Say who you are first: live.authenticate',
  sessionEnded: 'This session has ended: sign in again',
  tooMany: 'There are too many connections; please try again later',
  tooLarge: 'This is longer than a message to the server may be',
  notJson: 'This is not one JSON text in UTF-8, or one that is nested too deeply',
  flood: 'Too many requests; please wait before you connect again',
  silent: 'There was no sign of life',
};

/** Says in a frame of its own, before the connection ends, why it does. */
export function sessionEndedText(reason: CloseReason): string {
  const params = { reason: closeMessages[reason], code: closeCodes[reason] };
  return JSON.stringify({ jsonrpc: '2.0', method: 'session.ended', params });
}
