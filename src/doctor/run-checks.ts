import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import type { Environment } from '../config/tree.ts';
import { findHolder, type LockHolder } from '../data-dir/lock.ts';
import { collectBaseUri } from './base-uri.ts';
import { evaluateClock } from './clock.ts';
import { collectConfiguration } from './configuration.ts';
import { collectDataDirectory } from './data-directory.ts';
import { collectDatabase, type DatabaseFacts } from './database-facts.ts';
import { collectDisk } from './disk.ts';
import { collectFiles } from './files.ts';
import { checkNames, error, skipped, unexpected, type CheckName, type Finding, type CheckResult } from './finding.ts';
import { collectHookAddresses } from './hook-addresses.ts';
import { evaluateHooks, evaluateServerKeys } from './hooks.ts';
import { evaluateLastFailure } from './last-failure.ts';
import { collectPorts } from './startup-blockers.ts';
import { collectOpenFiles } from './open-files.ts';
import { findPushProblems, evaluatePush } from './push.ts';
import { evaluateServer, type ServerAnswer } from './server.ts';

/** No check may take longer: what it would have said is then not known. */
const CHECK_MS = 10_000;
const TOO_LONG = `could not be looked at within ${CHECK_MS / 1_000} s`;

interface CheckOptions {
  /** The configuration file. */
  readonly file: string;
  readonly env: Environment;
  /** The data directory as the file names it; null: it cannot be read from it. */
  readonly dataDir: string | null;
  /** Of this program. */
  readonly version: string;
  /** Asks the server of a data directory. */
  readonly askServer: (dataDir: string) => Promise<ServerAnswer>;
}

/** What the checks work with. */
interface CheckContext extends CheckOptions {
  readonly config: Config;
  readonly holder: LockHolder | null;
  readonly database: Promise<DatabaseFacts>;
}

/** Looks at everything an installation depends on and changes nothing; findings come in the order of `checkNames`. */
export async function runChecks(options: CheckOptions): Promise<Finding[]> {
  const { config, verdicts } = collectConfiguration(options.file, options.env);
  const first = named('configuration', verdicts);
  const rest = checkNames.filter((name) => name !== 'configuration');
  if (config === null) return [...first, ...(await withoutConfig(options, rest))];
  // Where the directory is closed to this user, the check of the server says so.
  const holder = await findHolder(config.dataDir).catch(() => null);
  const database = within(collectDatabase(config, holder !== null), {
    verdicts: [error(TOO_LONG, 'Look at the database server and its log.')],
    blockedBy: [],
    report: null,
    hooks: null,
    push: null,
  });
  const context: CheckContext = { ...options, config, holder, database };
  const found = await Promise.all(rest.map(async (name) => named(name, await run(name, context))));
  return [...first, ...found.flat()];
}

/** A server that runs is not concerned by mistakes that were made since; where it is, is often known all the same. */
async function withoutConfig(options: CheckOptions, names: readonly CheckName[]): Promise<Finding[]> {
  const { dataDir, file, version, askServer } = options;
  const server =
    dataDir === null
      ? []
      : await within(
          askServer(dataDir).then((answer) => evaluateServer(answer, { version, file })),
          overdue,
        );
  const why = skipped('needs a configuration without mistakes');
  return names.flatMap((name) => named(name, name === 'server' && server.length > 0 ? server : [why]));
}

type Check = (context: CheckContext) => Promise<readonly CheckResult[]>;

const checks: Readonly<Record<Exclude<CheckName, 'configuration'>, Check>> = {
  'data directory': async ({ config, holder }) => [await collectDataDirectory(config.dataDir, holder?.uid ?? null)],
  server: examineServer,
  database: async ({ database }) => (await database).verdicts,
  disk: async ({ config: { dataDir, postgresql, files } }) =>
    collectDisk([
      dataDir,
      ...(postgresql.embedded ? [join(dataDir, 'postgresql')] : []),
      ...(files.s3 === null ? [files.location] : []),
    ]),
  clock: async ({ database }) => {
    const { report } = await database;
    return [evaluateClock(Date.now(), report?.clockAheadMs ?? null)];
  },
  'address policy': async ({ database, config }) => {
    const { hooks } = await database;
    return hooks === null ? [skipped('the hooks could not be read')] : collectHookAddresses(hooks.hosts, config);
  },
  'base-uri': async ({ config, holder }) => {
    if (holder === null) return [skipped('no server runs')];
    if (config.http.port === 0) return [skipped('http.port is 0: which port the server has is not known')];
    return [await collectBaseUri(config, config.http.port)];
  },
  'open files': async ({ config, holder }) => [await collectOpenFiles(config, holder?.pid ?? null)],
  'server keys': async ({ config, database }) => {
    const { hooks } = await database;
    return [evaluateServerKeys(config, hooks?.keySigned ?? null)];
  },
  hooks: async ({ database, config }) => {
    const { hooks } = await database;
    return hooks === null ? [skipped('the hooks could not be read')] : evaluateHooks(hooks, config);
  },
  push: async ({ database, config }) => evaluatePush(config, await findPushProblems(config), (await database).push),
  files: async ({ config, holder }) => [await collectFiles(config, holder?.uid ?? null)],
};

/** Where none runs, what of it is in the way of a start and how the last one failed belong to it. */
async function examineServer(context: CheckContext): Promise<readonly CheckResult[]> {
  const { config, file, version, askServer } = context;
  const answer = await askServer(config.dataDir);
  if (!('silence' in answer) || !answer.isUnlocked) return evaluateServer(answer, { version, file });
  const ports = await collectPorts(config);
  if (answer.failure === null) return [answer.silence, ...ports];
  const { report, blockedBy } = await context.database;
  const database = report === null && blockedBy.length === 0 ? null : blockedBy;
  return [evaluateLastFailure(answer.failure, { ports, database }), ...ports];
}

async function run(name: Exclude<CheckName, 'configuration'>, context: CheckContext): Promise<readonly CheckResult[]> {
  // One check that fails must not take the others' findings with it.
  const checking = checks[name](context).catch((cause: unknown) => [unexpected(cause)]);
  return within(checking, overdue);
}

const overdue: readonly CheckResult[] = [
  error(TOO_LONG, 'Run it again; if it stays, look at what this check is about.'),
];

/** What a promise resolves with, or `late` when that takes too long. */
async function within<T>(work: Promise<T>, late: T): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<T>((resolve) => {
    timer = setTimeout(() => resolve(late), CHECK_MS);
  });
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

function named(check: CheckName, verdicts: readonly CheckResult[]): Finding[] {
  return verdicts.map((verdict) => ({ check, ...verdict }));
}
