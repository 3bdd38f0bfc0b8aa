import { describeError, type Log } from '../../src/log.ts';

/** A log that records every line in the form of the real one. */
export function recordingLog(lines: string[]): Log {
  const write = (event: string, fields: Record<string, unknown> = {}): void => {
    const { error, ...rest } = fields;
    lines.push(JSON.stringify({ event, ...rest, ...(error === undefined ? {} : { error: describeError(error) }) }));
  };
  const log: Log = { debug: write, info: write, warn: write, error: write, child: () => log };
  return log;
}
