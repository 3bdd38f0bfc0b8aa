import { closeCodes, type CloseReason } from './close-codes.ts';
import { connectionKinds, type ConnectionKind } from './connection-kind.ts';

/** Why a connection was not taken. */
export const refusals = ['too many', 'too many waiting', 'too many of one source', 'origin', 'stopping'] as const;
export type Refusal = (typeof refusals)[number];

export const endings = [...(Object.keys(closeCodes) as CloseReason[]), 'client'] as const;
export type LiveEnding = (typeof endings)[number];

/** What happened on live connections since the start: plain numbers, for metrics. */
export class LiveCounts {
  readonly refused = zeros(refusals);
  readonly closed = zeros(endings);
  readonly framesIn = zeros(connectionKinds);
  /** Frames to clients: answers, changes, signals. */
  readonly framesOut = zeros(connectionKinds);
  /** Reads of changes from the database: for all followers of a conversation at once, and for those that lack some. */
  readonly reads = { fan_out: 0, catch_up: 0, shared: 0 };

  sent(kind: ConnectionKind, frames: number): void {
    this.framesOut[kind] += frames;
  }
}

function zeros<Name extends string>(names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
}
