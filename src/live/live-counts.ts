import { liveTransports, type LiveTransport } from '../model/transport.ts';
import { closeCodes, type CloseReason } from './close-codes.ts';

/** The reasons for which connections are refused. */
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

/** Counters of live connections since the start, for metrics. */
export class LiveCounts {
  readonly rejected = zeroCounts(connectionRejections);
  readonly disconnected = zeroCounts(disconnectReasons);
  readonly framesIn = zeroCounts(liveTransports);
  /** Frames sent to clients, by transport: answers, changes, ephemeral events. */
  readonly framesOut = zeroCounts(liveTransports);
  /**
   * Reads of changes from the database: for all followers of a conversation at once, and for clients that lack some.
   * `shared`: catch-ups that needed no read of their own.
   */
  readonly reads = { fan_out: 0, catch_up: 0, shared: 0 };

  countSent(kind: LiveTransport, frames: number): void {
    this.framesOut[kind] += frames;
  }
}

function zeroCounts<Name extends string>(names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
}
