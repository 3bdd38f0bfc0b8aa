import { connect } from 'node:net';
import type { Config, HttpConfig, MetricsConfig } from '../config/config.ts';
import type { Environment } from '../config/tree.ts';
import { checkConfiguration } from './configuration.ts';
import { checkDataDirectoryOwnership } from './data-directory.ts';
import { collectDatabaseFacts } from './database-facts.ts';
import { checkDiskSpace } from './disk.ts';
import { describePortHolder, findPortHolder } from '../port-holder.ts';
import { error, unexpectedErrorResult, type CheckName, type Finding, type CheckResult } from './finding.ts';

const CONNECT_TIMEOUT_MS = 1_000;

/** Finds what would prevent a start of the server. Call it only while no server runs. */
export async function findStartupBlockers(file: string, env: Environment): Promise<Finding[]> {
  const { config, verdicts } = checkConfiguration(file, env);
  if (config === null) return errorFindings('configuration', verdicts);
  const [ports, directory, database, disk] = await Promise.all([
    findTakenPorts(config),
    checkDataDirectoryOwnership(config.dataDir, null),
    collectDatabaseFacts(config, false),
    checkDiskSpace([config.dataDir]).catch((cause: unknown) => [unexpectedErrorResult(cause)]),
  ]);
  return [
    ...errorFindings('data directory', [directory]),
    ...errorFindings('server', ports),
    ...errorFindings('database', database.startBlockers),
    ...errorFindings('disk', disk),
  ];
}

function errorFindings(check: CheckName, verdicts: readonly CheckResult[]): Finding[] {
  return verdicts.filter(({ level }) => level === 'error').map((verdict) => ({ check, ...verdict }));
}

/** An error for each port of the stopped server that another program listens on. */
export async function findTakenPorts({ http, metrics }: Config): Promise<CheckResult[]> {
  const resultsByListener = await Promise.all([
    detectPortListener(http, 'http'),
    metrics.metricsEnabled ? detectPortListener(metrics, 'metrics') : [],
  ]);
  return resultsByListener.flat();
}

/**
 * Whether a program listens on a port. It tries to connect: listening on the port, even briefly, could take it from a
 * server that starts.
 */
async function detectPortListener(
  { interface: host, port }: HttpConfig | MetricsConfig,
  configSection: 'http' | 'metrics',
): Promise<CheckResult[]> {
  if (port === 0) return [];
  const isTaken = await new Promise<boolean>((resolve) => {
    const socket = connect({ host, port, timeout: CONNECT_TIMEOUT_MS });
    const finishProbe = (answers: boolean): void => {
      socket.destroy();
      resolve(answers);
    };
    socket.once('connect', () => finishProbe(true));
    socket.once('timeout', () => finishProbe(false));
    socket.once('error', () => finishProbe(false));
  });
  if (!isTaken) return [];
  const todo = `Stop it, or choose another port (${configSection}.interface, ${configSection}.port).`;
  const holder = describePortHolder(await findPortHolder(host, port));
  return [error(`another program listens on ${host}:${port}${holder}`, todo)];
}
