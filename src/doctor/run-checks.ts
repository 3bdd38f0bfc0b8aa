import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import type { Environment } from '../config/tree.ts';
import { findLockHolder, type LockHolder } from '../data-dir/lock.ts';
import { checkBaseUri } from './base-uri.ts';
import { evaluateClock } from './clock.ts';
import { checkConfiguration } from './configuration.ts';
import { checkDataDirectoryOwnership } from './data-directory.ts';
import { collectDatabaseFacts, NO_REPORTS, type DatabaseFacts } from './database-facts.ts';
import { checkDiskSpace } from './disk.ts';
import { checkFileStore } from './files.ts';
import {
  checkNames,
  error,
  skipped,
  unexpectedErrorResult,
  type CheckName,
  type Finding,
  type CheckResult,
} from './finding.ts';
import { checkHookAddresses } from './hook-addresses.ts';
import { evaluateFailingAndRemovedHooks, evaluateServerKeys } from './hooks.ts';
import { evaluateLastFailure } from './last-failure.ts';
import { findTakenPorts } from './startup-blockers.ts';
import { checkOpenFileLimit } from './open-files.ts';
import { findPushProblems, evaluatePush } from './push.ts';
import { evaluateRefusedPosts } from './refused-posts.ts';
import { evaluateServer, type ServerAnswer } from './server.ts';

/** A check that takes longer is abandoned, and an error is reported in its place. */
const CHECK_TIMEOUT_MS = 10_000;
const TOO_LONG = `could not be looked at within ${CHECK_TIMEOUT_MS / 1_000} s`;

interface CheckOptions {
  /** The path of the configuration file. */
  readonly configFile: string;
  readonly env: Environment;
  /** The data directory that the configuration sets; null: it cannot be read from the configuration. */
  readonly dataDir: string | null;
  /** The version of this program. */
  readonly version: string;
  /** Asks the server of a data directory about itself. */
  readonly askServer: (dataDir: string) => Promise<ServerAnswer>;
}

interface CheckContext extends CheckOptions {
  readonly config: Config;
  readonly holder: LockHolder | null;
  readonly database: Promise<DatabaseFacts>;
}

/**
 * Checks everything that an installation depends on, and changes nothing. The findings come in the order of
 * `checkNames`.
 */
export async function runChecks(options: CheckOptions): Promise<Finding[]> {
  const { config, verdicts } = checkConfiguration(options.configFile, options.env);
  const first = toFindings('configuration', verdicts);
  const otherCheckNames = checkNames.filter((name) => name !== 'configuration');
  if (config === null) return [...first, ...(await checkWithoutConfig(options, otherCheckNames))];
  // If this user may not read the data directory, the check of the server reports the error.
  const holder = await findLockHolder(config.dataDir).catch(() => null);
  const database = withTimeoutFallback(collectDatabaseFacts(config, holder !== null), {
    verdicts: [error(TOO_LONG, 'Look at the database server and its log.')],
    startBlockers: [],
    ...NO_REPORTS,
  });
  const context: CheckContext = { ...options, config, holder, database };
  const found = await Promise.all(otherCheckNames.map(async (name) => toFindings(name, await runCheck(name, context))));
  return [...first, ...found.flat()];
}

/**
 * The findings if the configuration has mistakes. Only the server is checked, if its data directory is known: mistakes
 * that were made after its start do not affect a running server.
 */
async function checkWithoutConfig(options: CheckOptions, names: readonly CheckName[]): Promise<Finding[]> {
  const { dataDir, configFile: file, version, askServer } = options;
  const serverResults =
    dataDir === null
      ? []
      : await withTimeoutFallback(
          askServer(dataDir).then((answer) => evaluateServer(answer, { version, file })),
          timedOutResults,
        );
  const skippedResult = skipped('needs a configuration without mistakes');
  return names.flatMap((name) =>
    toFindings(name, name === 'server' && serverResults.length > 0 ? serverResults : [skippedResult]),
  );
}

type Check = (context: CheckContext) => Promise<readonly CheckResult[]>;

const checks: Readonly<Record<Exclude<CheckName, 'configuration'>, Check>> = {
  'data directory': async ({ config, holder }) => [
    await checkDataDirectoryOwnership(config.dataDir, holder?.uid ?? null),
  ],
  server: examineServer,
  database: async ({ database }) => (await database).verdicts,
  disk: async ({ config: { dataDir, postgresql, files } }) =>
    checkDiskSpace([
      dataDir,
      ...(postgresql.embedded ? [join(dataDir, 'postgresql')] : []),
      ...(files.s3 === null ? [files.localFilesFolder] : []),
    ]),
  clock: async ({ database }) => {
    const { report } = await database;
    return [evaluateClock(Date.now(), report?.clockAheadMs ?? null)];
  },
  'address policy': async ({ database, config }) => {
    const { hooks } = await database;
    return hooks === null ? [skipped('the hooks could not be read')] : checkHookAddresses(hooks.hosts, config);
  },
  'base-uri': async ({ config, holder }) => {
    if (holder === null) return [skipped('no server runs')];
    if (config.http.port === 0) return [skipped('http.port is 0: which port the server has is not known')];
    return [await checkBaseUri(config, config.http.port)];
  },
  'open files': async ({ config, holder }) => [await checkOpenFileLimit(config, holder?.pid ?? null)],
  'server keys': async ({ config, database }) => {
    const { hooks } = await database;
    return [evaluateServerKeys(config, hooks?.keySignedHooks ?? null)];
  },
  hooks: async ({ database, config }) => {
    const { hooks } = await database;
    return hooks === null ? [skipped('the hooks could not be read')] : evaluateFailingAndRemovedHooks(hooks, config);
  },
  'refused posts': async ({ database }) => {
    const { refusedPosts } = await database;
    return refusedPosts === null ? [skipped('they could not be read')] : evaluateRefusedPosts(refusedPosts);
  },
  push: async ({ database, config }) => evaluatePush(config, await findPushProblems(config), (await database).push),
  files: async ({ config, holder, database }) => {
    const storeId = (await database).report?.storeId;
    return [await checkFileStore(config, { runningServerUid: holder?.uid ?? null, storeIdInDatabase: storeId })];
  },
};

/** If no server runs, the results include what prevents a start and how the last run failed. */
async function examineServer(context: CheckContext): Promise<readonly CheckResult[]> {
  const { config, configFile: file, version, askServer } = context;
  const answer = await askServer(config.dataDir);
  if (!('unreachableResult' in answer) || !answer.isDataDirUnlocked) return evaluateServer(answer, { version, file });
  const portResults = await findTakenPorts(config);
  if (answer.failure === null) return [answer.unreachableResult, ...portResults];
  const { report, startBlockers } = await context.database;
  const databaseBlockers = report === null && startBlockers.length === 0 ? null : startBlockers;
  return [
    evaluateLastFailure(answer.failure, { takenPorts: portResults, databaseBlockers: databaseBlockers }),
    ...portResults,
  ];
}

async function runCheck(
  name: Exclude<CheckName, 'configuration'>,
  context: CheckContext,
): Promise<readonly CheckResult[]> {
  // If one check throws, the findings of the other checks must not be lost.
  const checking = checks[name](context).catch((cause: unknown) => [unexpectedErrorResult(cause)]);
  return withTimeoutFallback(checking, timedOutResults);
}

const timedOutResults: readonly CheckResult[] = [
  error(TOO_LONG, 'Run it again; if it stays, look at what this check is about.'),
];

/** Resolves with the value of `work`, or with `fallback` when that takes too long. */
async function withTimeoutFallback<T>(work: Promise<T>, fallback: T): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<T>((resolve) => {
    timer = setTimeout(() => resolve(fallback), CHECK_TIMEOUT_MS);
  });
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

function toFindings(check: CheckName, verdicts: readonly CheckResult[]): Finding[] {
  return verdicts.map((verdict) => ({ check, ...verdict }));
}
