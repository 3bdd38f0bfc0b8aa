import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { readAsset } from '../assets.ts';
import { loadConfig, readTree, REFERENCE } from '../config/load.ts';
import type { SettingKey } from '../config/schema.ts';
import { checkAnswer } from '../config/setup.ts';
import { describeConfig, formatConfig } from '../config/show.ts';
import { configure, readConfigText, type Answers, type Configured } from './configure.ts';
import { print, printError, type CommandContext } from './context.ts';
import { exitCodes } from './exit-codes.ts';
import { CommandError } from './failure.ts';
import { configFlag, withExamples, withJson } from './options.ts';
import { Prompt } from './prompt.ts';
import { askMissing, findMissing, howToGive, withDatabase, type DatabaseFlags } from './setup-questions.ts';

const ETC = '/etc/klatch/server.conf';

interface SetupOptions {
  readonly baseUri?: string;
  readonly projectName?: string;
  readonly embedded?: boolean;
  readonly dbHost?: string;
  readonly dbPort?: string;
  readonly dbName?: string;
  readonly dbUser?: string;
  readonly dbPasswordFile?: string;
  readonly dataDir?: string;
  readonly interface?: string;
  readonly port?: string;
  readonly allow?: readonly string[];
  readonly json?: boolean;
}

export function addSetup(program: Command, context: CommandContext): void {
  const databaseOptions = ['dbHost', 'dbPort', 'dbName', 'dbUser', 'dbPasswordFile'];
  const command = program
    .command('setup')
    .description('make a complete configuration, or complete the one that is there; answers in it are never changed')
    .option('--base-uri <url>', 'the public address of the HTTP interface, such as https://chat.example.org')
    .option('--project-name <name>', 'the name of this installation, as people see it')
    .option('--embedded', 'run a private PostgreSQL in the data directory')
    .option('--db-host <host>', 'a database of yours: its host name, address or the folder of its Unix socket')
    .option('--db-port <port>', 'its TCP port (default: 5432)')
    .option('--db-name <name>', 'its name (default: klatch)')
    .option('--db-user <user>', 'its user (default: klatch)')
    .option('--db-password-file <file>', 'a file that holds the password (or set KLATCH_DB_PASSWORD)')
    .option('--data-dir <dir>', "the folder of the server's own state (default: /var/lib/klatch)")
    .option('--interface <address>', 'the address to listen on (default: 127.0.0.1)')
    .option('--port <port>', 'the port to listen on (default: 9090)')
    .option('--allow <range>', 'what hooks may reach beyond public addresses; may be repeated', collect)
    .action(async (options: SetupOptions, self: Command) => setup(context, configFlag(self), options));
  command.options.find(({ long }) => long === '--embedded')?.conflicts(databaseOptions);
  withExamples(withJson(command), [
    'klatch setup --embedded --base-uri https://chat.example.org',
    'KLATCH_DB_PASSWORD=… klatch setup --db-host db.example.org --base-uri https://chat.example.org --allow private',
  ]);
}

const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value];

async function setup(context: CommandContext, flag: string | undefined, options: SetupOptions): Promise<void> {
  const file = targetFile(context, flag);
  const answers = readAnswers(options);
  const database = readDatabase(context, options);
  const source = readConfigText(file);
  const missing = findMissing(source, answers, database);
  if (missing.length === 0) {
    report(context, configure(file, withDatabase(source, answers, database), context), options);
    return;
  }
  if (!context.input.isTTY || !context.errors.isTTY) {
    const lines = missing.map((name) => `  ${howToGive[name]}`);
    throw new CommandError(exitCodes.usage, ['nothing was written, these answers are missing:', ...lines].join('\n'));
  }
  // Questions go to standard error: the result on standard output may be on its way into a file.
  const prompt = new Prompt(context.input, context.errors);
  try {
    const complete = await askMissing(source, { answers, database, missing }, prompt);
    report(context, configure(file, complete, context), options);
  } finally {
    prompt.stop();
  }
}

/** Where the server will look for it: the named file, the one that is there, else the place that fits the program. */
function targetFile({ env, programDir }: CommandContext, flag: string | undefined): string {
  const named = flag ?? env['KLATCH_CONFIG'];
  if (named !== undefined && named !== '') return resolve(named);
  const conf = join(programDir, '../conf');
  const beside = join(conf, 'server.conf');
  return existsSync(beside) || (existsSync(conf) && !existsSync(ETC)) ? beside : ETC;
}

function readAnswers(options: SetupOptions): Answers {
  const { baseUri, projectName, dataDir, port, allow } = options;
  const given: readonly (readonly [string, SettingKey, string | undefined])[] = [
    ['--base-uri', 'http.base-uri', baseUri],
    ['--project-name', 'project-name', projectName],
    ['--data-dir', 'data-dir', dataDir],
    ['--interface', 'http.interface', options.interface],
    ['--port', 'http.port', port],
  ];
  for (const [name, key, value] of given) checkFlag(name, key, value);
  return {
    ...(baseUri === undefined ? {} : { baseUri }),
    ...(projectName === undefined ? {} : { projectName }),
    // A path on the command line starts at the working folder, one in the file at the file.
    ...(dataDir === undefined ? {} : { dataDir: resolve(dataDir) }),
    ...(options.interface === undefined ? {} : { interface: options.interface }),
    ...(port === undefined ? {} : { port: Number(port) }),
    ...(allow === undefined ? {} : { deliveryAllow: allow }),
  };
}

function readDatabase({ env }: CommandContext, options: SetupOptions): DatabaseFlags {
  const { embedded = false, dbHost, dbPort, dbName, dbUser, dbPasswordFile } = options;
  checkFlag('--db-host', 'services.postgresql.host', dbHost);
  checkFlag('--db-port', 'services.postgresql.port', dbPort);
  checkFlag('--db-name', 'services.postgresql.db', dbName);
  checkFlag('--db-user', 'services.postgresql.user', dbUser);
  if (embedded) return { embedded };
  const password = dbPasswordFile === undefined ? env['KLATCH_DB_PASSWORD'] : readPassword(dbPasswordFile);
  return {
    embedded,
    ...(dbHost === undefined ? {} : { host: dbHost }),
    ...(dbPort === undefined ? {} : { port: Number(dbPort) }),
    ...(dbName === undefined ? {} : { db: dbName }),
    ...(dbUser === undefined ? {} : { user: dbUser }),
    ...(password === undefined ? {} : { password }),
  };
}

/** The first line of a file: editors end it with a line break that is no part of the password. */
function readPassword(file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandError(exitCodes.usage, `--db-password-file: ${reason}`, { cause: error });
  }
}

function checkFlag(name: string, key: SettingKey, value: string | undefined): void {
  const problem = value === undefined ? null : checkAnswer(key, value);
  if (problem !== null) throw new CommandError(exitCodes.usage, `${name}: ${problem}`);
}

function report(context: CommandContext, done: Configured, { json }: SetupOptions): void {
  const { file, set, kept, keysMadeIn } = done;
  if (json === true) print(context, JSON.stringify(done, null, 2));
  else {
    const settings = describeConfig(readReport(file, context));
    const lines = (keys: readonly SettingKey[]): string =>
      formatConfig(settings.filter(({ key }) => keys.includes(key)))
        .replace(/^/gm, '  ')
        .trimEnd();
    if (set.length === 0) print(context, `Nothing to write: ${file} has all these answers already.`);
    else print(context, `Wrote to ${file}:`, lines(set));
    if (kept.length > 0) print(context, 'Kept, since these have an answer already:', lines(kept));
    if (keysMadeIn !== null) print(context, `Made a pair of server keys in ${keysMadeIn}.`);
  }
  // Throws with everything that is still missing or wrong.
  for (const warning of loadConfig(file, { env: context.env }).warnings) printError(context, `warning: ${warning}`);
  if (json !== true) print(context, `Next: start the server with "klatch serve${nextFlag(file)}".`);
}

function readReport(file: string, { env }: CommandContext): ReturnType<typeof readTree> {
  return readTree([{ name: REFERENCE, text: readAsset('config/reference.conf') }, { path: file }], env);
}

function nextFlag(file: string): string {
  return file === ETC ? '' : ` --config ${file}`;
}
