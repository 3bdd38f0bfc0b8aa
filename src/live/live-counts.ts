import { liveTransports, type LiveTransport } from '../model/transport.ts';
import { closeCodes, type CloseReason } from './close-codes.ts';

/** Why a connection was not taken. */
const connectionRejections = [
  'too_many_connections',
  'too_many_unauthenticated',
  'too_many_from_source',
  'origin',
  'stopping',
] as const;
export type ConnectionRejection = (typeof connectionRejections)[number];

const disconnectReasons = [...(Object.keys(closeCodes) as CloseReason[]), 'client'] as const;
export type DisconnectReason = (typeof disconnectReasons)[number];

/** What happened on live connections since the start: plain numbers, for metrics. */
export class LiveCounts {
  readonly rejected = zeroCounts(connectionRejections);
  readonly disconnected = zeroCounts(disconnectReasons);
  readonly framesIn = zeroCounts(liveTransports);
  /** Frames to clients: answers, changes, signals. */
  readonly framesOut = zeroCounts(liveTransports);
  /** Reads of changes from the database: for all followers of a conversation at once, and for those that lack some. */
  readonly reads = { fan_out: 0, catch_up: 0, shared: 0 };

  countSent(kind: LiveTransport, frames: number): void {
    this.framesOut[kind] += frames;
  }
}

function zeroCounts<Name extends string>(names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
}
