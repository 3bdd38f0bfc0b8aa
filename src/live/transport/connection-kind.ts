/** What carries the texts of a live connection. */
export const connectionKinds = ['websocket', 'tcp'] as const;
export type ConnectionKind = (typeof connectionKinds)[number];
