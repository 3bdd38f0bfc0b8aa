import { connect } from 'node:net';
import type { Config, HttpConfig, MetricsConfig } from '../config/config.ts';
import type { Environment } from '../config/tree.ts';
import { collectConfiguration } from './configuration.ts';
import { collectDataDirectory } from './data-directory.ts';
import { collectDatabase } from './database-facts.ts';
import { collectDisk } from './disk.ts';
import { describeHolder, findPortHolder } from '../port-holder.ts';
import { error, unexpected, type CheckName, type Finding, type CheckResult } from './finding.ts';

const CONNECT_MS = 1_000;

/** What would keep a server that is started now from its work; only to be asked while none runs. */
export async function findStartupBlockers(file: string, env: Environment): Promise<Finding[]> {
  const { config, verdicts } = collectConfiguration(file, env);
  if (config === null) return errors('configuration', verdicts);
  const [ports, directory, database, disk] = await Promise.all([
    collectPorts(config),
    collectDataDirectory(config.dataDir, null),
    collectDatabase(config, false),
    collectDisk([config.dataDir]).catch((cause: unknown) => [unexpected(cause)]),
  ]);
  return [
    ...errors('data directory', [directory]),
    ...errors('server', ports),
    ...errors('database', database.blockedBy),
    ...errors('disk', disk),
  ];
}

function errors(check: CheckName, verdicts: readonly CheckResult[]): Finding[] {
  return verdicts.filter(({ level }) => level === 'error').map((verdict) => ({ check, ...verdict }));
}

/** The ports of a server that does not run and that another program has by now. */
export async function collectPorts({ http, metrics }: Config): Promise<CheckResult[]> {
  const found = await Promise.all([examinePort(http, 'http'), metrics.enabled ? examinePort(metrics, 'metrics') : []]);
  return found.flat();
}

/** By connecting: listening there for a moment could take the port from a server that starts. */
async function examinePort(
  { interface: host, port }: HttpConfig | MetricsConfig,
  keys: 'http' | 'metrics',
): Promise<CheckResult[]> {
  if (port === 0) return [];
  const isTaken = await new Promise<boolean>((resolve) => {
    const socket = connect({ host, port, timeout: CONNECT_MS });
    const settle = (answers: boolean): void => {
      socket.destroy();
      resolve(answers);
    };
    socket.once('connect', () => settle(true));
    socket.once('timeout', () => settle(false));
    socket.once('error', () => settle(false));
  });
  if (!isTaken) return [];
  const todo = `Stop it, or choose another port (${keys}.interface, ${keys}.port).`;
  const holder = describeHolder(await findPortHolder(host, port));
  return [error(`another program listens on ${host}:${port}${holder}`, todo)];
}
