import { readdir, readFile } from 'node:fs/promises';
import type { Config } from '../config/config.ts';
import { countWithNoun, error, ok, skipped, warning, type CheckResult } from './finding.ts';

/**
 * Database connections besides the general pool: intake, settlements, leases, one that listens and one that notifies,
 * two for live clients, two for searches. A test counts them.
 */
export const DEDICATED_DATABASE_CONNECTIONS = 9;
/** The delivery client keeps at most this many connections open for the next delivery. */
const MAX_IDLE_DELIVERY_CONNECTIONS = 256;
/** The maximum number of connections to the control socket. */
const MAX_CONTROL_CONNECTIONS = 64;
/** An allowance for files of the program and its libraries, pipes, logs, and look-ups. */
const PROGRAM_FILES_ALLOWANCE = 100;
/** The number of concurrent callers that a server should have room for. */
export const EXPECTED_CALLERS = 1_000;
const OPEN_FILES_WARNING_SHARE = 0.8;

const TODO = 'Raise the limit of open files for the server (LimitNOFILE= in a systemd unit, ulimit -n in a shell).';

/** The number of files that the configured limits allow together, without callers and live clients. */
export function neededFileDescriptorsWithoutCallers({ postgresql, delivery }: Config): number {
  const database = DEDICATED_DATABASE_CONNECTIONS + postgresql.generalPoolSize;
  return (
    database + delivery.maxInFlight + MAX_IDLE_DELIVERY_CONNECTIONS + MAX_CONTROL_CONNECTIONS + PROGRAM_FILES_ALLOWANCE
  );
}

/**
 * Checks the limit of open files of a process. If `pid` is null, no server runs: the function checks this process,
 * whose limit a server started here would have.
 */
export async function checkOpenFileLimit(config: Config, pid: number | null): Promise<CheckResult> {
  const procFolder = `/proc/${pid ?? 'self'}`;
  let limitsFileText: string;
  try {
    limitsFileText = await readFile(`${procFolder}/limits`, 'utf8');
  } catch (cause) {
    return skipped(`${procFolder}/limits cannot be read (${(cause as NodeJS.ErrnoException).code})`);
  }
  const text = /^Max open files +(\S+)/m.exec(limitsFileText)?.[1];
  if (text === undefined) return skipped(`${procFolder}/limits does not name the limit of open files`);
  const limit = text === 'unlimited' ? Number.POSITIVE_INFINITY : Number(text);
  const descriptorNames = pid === null ? null : await readdir(`${procFolder}/fd`).catch(() => null);
  const { maxLiveConnections: connections } = config.live;
  return evaluateOpenFiles({
    openFileLimit: limit,
    openFiles: descriptorNames?.length ?? null,
    neededWithoutCallersAndLiveClients: neededFileDescriptorsWithoutCallers(config),
    maxLiveConnections: connections,
  });
}

/**
 * Compares the limit of open files with what the configured bounds need. `openFiles`: the files that the server has
 * open; null: this user may not count them, or no server runs. Live clients do not change the level, since few
 * installations come near `maxLiveConnections`.
 */
export function evaluateOpenFiles(files: {
  openFileLimit: number;
  openFiles: number | null;
  neededWithoutCallersAndLiveClients: number;
  maxLiveConnections: number;
}): CheckResult {
  const {
    openFileLimit: limit,
    openFiles: open,
    neededWithoutCallersAndLiveClients,
    maxLiveConnections: connections,
  } = files;
  const limitText = Number.isFinite(limit) ? `at most ${limit}` : 'without a limit';
  const openAndLimitText =
    open === null
      ? `${limitText} for a server that is started here`
      : `${countWithNoun(open, 'file')} open, ${limitText}`;
  const found = `${openAndLimitText}; the configured bounds take up to ${neededWithoutCallersAndLiveClients}, live clients up to ${connections}, beside callers`;
  if (limit < neededWithoutCallersAndLiveClients) return error(found, TODO);
  if (limit < neededWithoutCallersAndLiveClients + EXPECTED_CALLERS || (open ?? 0) > limit * OPEN_FILES_WARNING_SHARE)
    return warning(found, TODO);
  return ok(found);
}
