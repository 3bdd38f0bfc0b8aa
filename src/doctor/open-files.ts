import { readdir, readFile } from 'node:fs/promises';
import type { Config } from '../config/config.ts';
import { countWithNoun, error, ok, skipped, warning, type CheckResult } from './finding.ts';

/**
 * Database connections besides the general pool: intake, settlements, leases, one that listens and one that notifies,
 * two for live clients, two for searches. A test counts them.
 */
export const DEDICATED_DATABASE_CONNECTIONS = 9;
/** The delivery client keeps at most this many connections open for the next delivery. */
const IDLE_DELIVERY_CONNECTIONS = 256;
/** The maximum number of connections to the control socket. */
const CONTROL_CONNECTIONS = 64;
/** An allowance for files of the program and its libraries, pipes, logs, and look-ups. */
const PROGRAM_FILES = 100;
/** The number of concurrent callers that a server should have room for. */
export const EXPECTED_CALLERS = 1_000;
const NEARLY_FULL_SHARE = 0.8;

const TODO = 'Raise the limit of open files for the server (LimitNOFILE= in a systemd unit, ulimit -n in a shell).';

/** The number of files that the configured limits allow together, without callers and live clients. */
export function neededFileDescriptorsWithoutCallers({ postgresql, delivery }: Config): number {
  const database = DEDICATED_DATABASE_CONNECTIONS + postgresql.generalPoolSize;
  return database + delivery.maxInFlight + IDLE_DELIVERY_CONNECTIONS + CONTROL_CONNECTIONS + PROGRAM_FILES;
}

/**
 * Checks the limit of open files of a process. If `pid` is null, no server runs: the function checks this process,
 * whose limit a server started here would have.
 */
export async function checkOpenFileLimit(config: Config, pid: number | null): Promise<CheckResult> {
  const process = `/proc/${pid ?? 'self'}`;
  let limits: string;
  try {
    limits = await readFile(`${process}/limits`, 'utf8');
  } catch (cause) {
    return skipped(`${process}/limits cannot be read (${(cause as NodeJS.ErrnoException).code})`);
  }
  const text = /^Max open files +(\S+)/m.exec(limits)?.[1];
  if (text === undefined) return skipped(`${process}/limits does not name the limit of open files`);
  const limit = text === 'unlimited' ? Number.POSITIVE_INFINITY : Number(text);
  const open = pid === null ? null : await readdir(`${process}/fd`).catch(() => null);
  const { maxLiveConnections: connections } = config.live;
  return evaluateOpenFiles({
    limit,
    open: open?.length ?? null,
    neededWithoutCallersAndLiveClients: neededFileDescriptorsWithoutCallers(config),
    maxLiveConnections: connections,
  });
}

/**
 * Compares the limit of open files with what the configured bounds need. `open`: the files that the server has open;
 * null: this user may not count them, or no server runs. Live clients do not change the level, since few installations
 * come near `maxLiveConnections`.
 */
export function evaluateOpenFiles(files: {
  limit: number;
  open: number | null;
  neededWithoutCallersAndLiveClients: number;
  maxLiveConnections: number;
}): CheckResult {
  const { limit, open, neededWithoutCallersAndLiveClients, maxLiveConnections: connections } = files;
  const bound = Number.isFinite(limit) ? `at most ${limit}` : 'without a limit';
  const what =
    open === null ? `${bound} for a server that is started here` : `${countWithNoun(open, 'file')} open, ${bound}`;
  const found = `${what}; the configured bounds take up to ${neededWithoutCallersAndLiveClients}, live clients up to ${connections}, beside callers`;
  if (limit < neededWithoutCallersAndLiveClients) return error(found, TODO);
  if (limit < neededWithoutCallersAndLiveClients + EXPECTED_CALLERS || (open ?? 0) > limit * NEARLY_FULL_SHARE)
    return warning(found, TODO);
  return ok(found);
}
