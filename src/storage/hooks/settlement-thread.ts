/**
 * The thread that writes settlements: one statement for each message that it gets, on a connection of its own. The
 * event loop of the main thread, which delivers, is the server's bottleneck. It has no time for the arrays, the
 * protocol and the socket of a settlement.
 */
import { parentPort, workerData, type MessagePort } from 'node:worker_threads';
import type { HookId } from '../../model/ids.ts';
import { Connection, type ConnectionTarget } from '../db/connection.ts';
import { serializeErrorForThread, type SerializedError } from './serialized-error.ts';
import type { PackedSettlements } from './settlement-columns.ts';
import { writeSettlements } from './write-settlements.ts';

/** The data that the thread is started with. */
export interface SettlementThreadData {
  readonly target: ConnectionTarget;
  /** The deadline of each write, connecting included. */
  readonly timeoutMs: number;
}

/** The answer to a message: the hooks whose settlement was written in full, or the error of the write. */
export type SettlementAnswer = readonly HookId[] | SerializedError;

function serve(port: MessagePort, { target, timeoutMs }: SettlementThreadData): void {
  const connection = new Connection(target, 'settle', { forceGenericPlans: true });
  const write = async (packed: PackedSettlements): Promise<SettlementAnswer> => {
    try {
      return await connection.run((sql) => writeSettlements(sql, packed), timeoutMs);
    } catch (error) {
      return serializeErrorForThread(error);
    }
  };
  port.on('message', (packed: PackedSettlements) => {
    void write(packed).then((answer) => port.postMessage(answer));
  });
}

if (parentPort !== null) serve(parentPort, workerData as SettlementThreadData);
