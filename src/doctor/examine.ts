import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import type { Environment } from '../config/tree.ts';
import { findHolder, type LockHolder } from '../storage/data-dir-lock.ts';
import { examineBaseUri } from './base-uri.ts';
import { judgeClock } from './clock.ts';
import { examineConfiguration } from './configuration.ts';
import { examineDataDirectory } from './data-directory.ts';
import { examineDatabase, type DatabaseFacts } from './database-facts.ts';
import { examineDisk } from './disk.ts';
import { examineFiles } from './files.ts';
import { checkNames, error, skipped, unexpected, type CheckName, type Finding, type Verdict } from './finding.ts';
import { examineHookAddresses } from './hook-addresses.ts';
import { judgeHooks, judgeServerKeys } from './hooks.ts';
import { judgeLastFailure } from './last-failure.ts';
import { examinePorts } from './obstacles.ts';
import { examineOpenFiles } from './open-files.ts';
import { findPushProblems, judgePush } from './push.ts';
import { judgeServer, type ServerAnswer } from './server.ts';

/** No check may take longer: what it would have said is then not known. */
const CHECK_MS = 10_000;
const TOO_LONG = `could not be looked at within ${CHECK_MS / 1_000} s`;

export interface ExaminationOptions {
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
interface Subject extends ExaminationOptions {
  readonly config: Config;
  readonly holder: LockHolder | null;
  readonly database: Promise<DatabaseFacts>;
}

/** Looks at everything an installation depends on and changes nothing; findings come in the order of `checkNames`. */
export async function examine(options: ExaminationOptions): Promise<Finding[]> {
  const { config, verdicts } = examineConfiguration(options.file, options.env);
  const first = named('configuration', verdicts);
  const rest = checkNames.filter((name) => name !== 'configuration');
  if (config === null) return [...first, ...(await withoutConfig(options, rest))];
  // Where the directory is closed to this user, the check of the server says so.
  const holder = await findHolder(config.dataDir).catch(() => null);
  const database = within(examineDatabase(config, holder !== null), {
    verdicts: [error(TOO_LONG, 'Look at the database server and its log.')],
    inTheWay: [],
    report: null,
    hooks: null,
    push: null,
  });
  const subject: Subject = { ...options, config, holder, database };
  const found = await Promise.all(rest.map(async (name) => named(name, await run(name, subject))));
  return [...first, ...found.flat()];
}

/** A server that runs is not concerned by mistakes that were made since; where it is, is often known all the same. */
async function withoutConfig(options: ExaminationOptions, names: readonly CheckName[]): Promise<Finding[]> {
  const { dataDir, file, version, askServer } = options;
  const server =
    dataDir === null
      ? []
      : await within(
          askServer(dataDir).then((answer) => judgeServer(answer, { version, file })),
          overdue,
        );
  const why = skipped('needs a configuration without mistakes');
  return names.flatMap((name) => named(name, name === 'server' && server.length > 0 ? server : [why]));
}

type Check = (subject: Subject) => Promise<readonly Verdict[]>;

const checks: Readonly<Record<Exclude<CheckName, 'configuration'>, Check>> = {
  'data directory': async ({ config, holder }) => [await examineDataDirectory(config.dataDir, holder?.uid ?? null)],
  server: examineServer,
  database: async ({ database }) => (await database).verdicts,
  disk: async ({ config: { dataDir, postgresql, files } }) =>
    examineDisk([
      dataDir,
      ...(postgresql.embedded ? [join(dataDir, 'postgresql')] : []),
      ...(files.s3 === null ? [files.location] : []),
    ]),
  clock: async ({ database }) => {
    const { report } = await database;
    return [judgeClock(Date.now(), report?.clockAheadMs ?? null)];
  },
  'address policy': async ({ database, config }) => {
    const { hooks } = await database;
    return hooks === null ? [skipped('the hooks could not be read')] : examineHookAddresses(hooks.hosts, config);
  },
  'base-uri': async ({ config, holder }) => {
    if (holder === null) return [skipped('no server runs')];
    if (config.http.port === 0) return [skipped('http.port is 0: which port the server has is not known')];
    return [await examineBaseUri(config, config.http.port)];
  },
  'open files': async ({ config, holder }) => [await examineOpenFiles(config, holder?.pid ?? null)],
  'server keys': async ({ config, database }) => {
    const { hooks } = await database;
    return [judgeServerKeys(config, hooks?.keySigned ?? null)];
  },
  hooks: async ({ database, config }) => {
    const { hooks } = await database;
    return hooks === null ? [skipped('the hooks could not be read')] : judgeHooks(hooks, config);
  },
  push: async ({ database, config }) => judgePush(config, await findPushProblems(config), (await database).push),
  files: async ({ config, holder }) => [await examineFiles(config, holder?.uid ?? null)],
};

/** Where none runs, what of it is in the way of a start and how the last one failed belong to it. */
async function examineServer(subject: Subject): Promise<readonly Verdict[]> {
  const { config, file, version, askServer } = subject;
  const answer = await askServer(config.dataDir);
  if (!('silence' in answer) || !answer.isFree) return judgeServer(answer, { version, file });
  const ports = await examinePorts(config);
  if (answer.failure === null) return [answer.silence, ...ports];
  const { report, inTheWay } = await subject.database;
  const database = report === null && inTheWay.length === 0 ? null : inTheWay;
  return [judgeLastFailure(answer.failure, { ports, database }), ...ports];
}

async function run(name: Exclude<CheckName, 'configuration'>, subject: Subject): Promise<readonly Verdict[]> {
  // One check that fails must not take the others' findings with it.
  const checking = checks[name](subject).catch((cause: unknown) => [unexpected(cause)]);
  return within(checking, overdue);
}

const overdue: readonly Verdict[] = [error(TOO_LONG, 'Run it again; if it stays, look at what this check is about.')];

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

function named(check: CheckName, verdicts: readonly Verdict[]): Finding[] {
  return verdicts.map((verdict) => ({ check, ...verdict }));
}
