import { accessSync, constants, existsSync, realpathSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Command } from 'commander';
import { keyState, type ConfigText } from '../../config/edit.ts';
import { EmbeddedError } from '../../storage/embedded/embedded-error.ts';
import { findPrograms, type PostgresqlPrograms } from '../../storage/embedded/programs.ts';
import { clusterLabel } from '../../storage/provision/clusters.ts';
import { thisInstallation } from '../../installation.ts';
import {
  configure,
  folderOrNearestExistingAncestor,
  readConfigOrTemplate,
  serverOwnerIfRoot,
  SYSTEM_CONFIG,
  type Answers,
} from './configure.ts';
import { printError, type CommandContext } from '../core/context.ts';
import { exitCodes } from '../core/exit-codes.ts';
import { CommandError } from '../core/failure.ts';
import { configFlag, withExamples, withJson } from '../core/options.ts';
import { Prompt } from '../core/prompt.ts';
import { readAnswers, readDatabaseFlags, refuseContradictions, type SetupOptions } from './setup-flags.ts';
import {
  chooseCluster,
  examineClusters,
  configuredDatabasePort,
  makeLocalDatabase,
  usableClusters,
  type LocalDatabase,
} from './setup-local.ts';
import {
  askMissing,
  findMissing,
  missingAnswerAdvice,
  answersWithDatabase,
  type DatabaseOffers,
  type GivenAnswers,
  type MissingAnswer,
} from './setup-questions.ts';
import { reportSetup } from './setup-report.ts';

const BIN_DIR_SETTING = 'services.postgresql.bin-dir';

export function addSetup(program: Command, context: CommandContext): void {
  const setupCommand = program
    .command('setup')
    .description('make a complete configuration, or complete the one that is there; answers in it are never changed')
    .option('--base-uri <url>', 'the public address of the HTTP interface, such as https://chat.example.org')
    .option('--project-name <name>', 'the name of this installation, as people see it')
    .option('--local-database', 'make a role and a database in PostgreSQL on this machine (as root)')
    .option('--cluster <name>', 'which server of this machine, such as 15/main, where several run')
    .option('--socket-dir <dir>', 'the folder of its Unix socket (default: /var/run/postgresql)')
    .option('--embedded', 'run a private PostgreSQL in the data directory')
    .option('--db-host <host>', 'a database of yours: its host name, address or the folder of its Unix socket')
    .option('--db-port <port>', 'its TCP port (default: 5432)')
    .option('--db-name <name>', 'its name (default: klatch)')
    .option('--db-user <user>', 'its user (default: klatch)')
    .option('--db-password-file <file>', 'a file that holds the password (or set KLATCH_DB_PASSWORD)')
    .option('--db-tls <mode>', 'disable, require or verify-full (default: disable)')
    .option('--db-ca-file <file>', 'the certificate authority of that database, for verify-full')
    .option('--data-dir <dir>', "the folder of the server's own state (default: /var/lib/klatch; unpacked: data/)")
    .option('--interface <address>', 'the address to listen on (default: 127.0.0.1)')
    .option('--port <port>', 'the port to listen on (default: 9090)')
    .option('--metrics-port <port>', 'the port of the metrics (default: 19090)')
    .option(
      '--web-push-subject <address>',
      "whom browsers' push services may write to: mailto: or https:// (default: the base-uri where that is https)",
    )
    .option('--allow <range>', 'what hooks may reach beyond public addresses; may be repeated', appendValue)
    .action(async (options: SetupOptions, self: Command) => setup(context, configFlag(self), options));
  const localOptions = ['localDatabase', 'cluster', 'socketDir'];
  const conflicts: Readonly<Record<string, readonly string[]>> = {
    '--embedded': [...localOptions, 'dbHost', 'dbPort', 'dbName', 'dbUser', 'dbPasswordFile', 'dbTls', 'dbCaFile'],
    '--db-host': localOptions,
  };
  for (const option of setupCommand.options) option.conflicts([...(conflicts[option.long ?? ''] ?? [])]);
  withExamples(withJson(setupCommand), [
    'sudo klatch setup',
    'sudo klatch setup --local-database --base-uri https://chat.example.org',
    'klatch setup --embedded --base-uri https://chat.example.org',
    'KLATCH_DB_PASSWORD=… klatch setup --db-host db.example.org --base-uri https://chat.example.org --allow private',
  ]);
}

const appendValue = (value: string, earlierValues: readonly string[] = []): readonly string[] => [
  ...earlierValues,
  value,
];

async function setup(context: CommandContext, configOption: string | undefined, options: SetupOptions): Promise<void> {
  const file = chooseConfigFile(context, configOption);
  requireReadableIfExists(file);
  const source = readConfigOrTemplate(file);
  const answersFromOptions = {
    answers: { ...archiveDefaults(context, source), ...readAnswers(options) },
    database: readDatabaseFlags(context, options),
  };
  refuseContradictions(source, options, answersFromOptions.database);
  const missing = findMissing(source, answersFromOptions.answers, answersFromOptions.database);
  // Before setup asks a question or creates anything, it checks that this user can write the configuration.
  if (!existsSync(file) || missing.length > 0 || answersFromOptions.database.createsLocalDatabase === true)
    requireReplaceable(file);
  const completeAnswers =
    missing.length === 0
      ? answersFromOptions
      : await askForMissing(context, source, { given: answersFromOptions, missing, options });
  const localDatabase =
    completeAnswers.database.createsLocalDatabase === true
      ? await chooseClusterAndMakeDatabase(context, source, { given: completeAnswers, options })
      : null;
  if (completeAnswers.database.embedded && keyState(source, BIN_DIR_SETTING) === 'open')
    await warnOfMissingPostgresqlPrograms(context);
  const allAnswers =
    localDatabase === null
      ? answersWithDatabase(source, completeAnswers)
      : { ...completeAnswers.answers, database: localDatabase.answer };
  reportSetup(context, configure(file, allAnswers, context), { json: options.json, local: localDatabase });
}

/**
 * The path of the configuration that setup completes or creates:
 * - the one that `--config` or KLATCH_CONFIG names;
 * - else `conf/server.conf` beside the program: in an archive, if this file exists, or if its folder exists and
 *   SYSTEM_CONFIG does not;
 * - else SYSTEM_CONFIG.
 */
function chooseConfigFile({ env, programBinDir }: CommandContext, configOption: string | undefined): string {
  const namedFile = configOption ?? env['KLATCH_CONFIG'];
  if (namedFile !== undefined && namedFile !== '') return resolve(namedFile);
  const beside = configBesideProgram(programBinDir);
  if (isArchive() || existsSync(beside)) return beside;
  return existsSync(dirname(beside)) && !existsSync(SYSTEM_CONFIG) ? beside : SYSTEM_CONFIG;
}

function requireReadableIfExists(file: string): void {
  requireAccessIfExists(file, { path: file, mode: constants.R_OK, access: 'read' });
}

/**
 * Throws CommandError if this user cannot write into the folder of the configuration. Setup writes a new file there,
 * which then replaces the old one.
 */
function requireReplaceable(file: string): void {
  const path = existsSync(file) ? realpathSync(file) : file;
  const folder = folderOrNearestExistingAncestor(dirname(path));
  requireAccessIfExists(file, { path: folder, mode: constants.W_OK | constants.X_OK, access: 'written' });
}

interface RequiredAccess {
  /** The path that is checked: the file itself, or the folder in which it will be replaced. */
  readonly path: string;
  /** The mode for `accessSync`, such as W_OK. */
  readonly mode: number;
  readonly access: 'read' | 'written';
}

/** Throws CommandError if this user may not access the path. Does nothing if the path does not exist. */
function requireAccessIfExists(file: string, { path, mode, access }: RequiredAccess): void {
  try {
    accessSync(path, mode);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return;
    const who = file === SYSTEM_CONFIG ? 'root: repeat this command with sudo' : `the owner of ${path}`;
    const message = `${file} can be ${access} only by ${who} (${code})`;
    throw new CommandError(exitCodes.cannotCreate, message, { cause: error });
  }
}

const configBesideProgram = (programBinDir: string): string => join(programBinDir, '../conf/server.conf');
const isArchive = (): boolean => thisInstallation().kind === 'archive';

/**
 * The default answers in an unpacked archive: the data directory is beside the configuration. So any user can run the
 * server, and the archive can be moved as a whole.
 */
function archiveDefaults({ programBinDir }: CommandContext, source: ConfigText): Answers {
  const isArchiveConfig = isArchive() && source.file === configBesideProgram(programBinDir);
  return isArchiveConfig && keyState(source, 'data-dir') === 'open' ? { dataDir: '../data' } : {};
}

interface SetupInput {
  readonly given: GivenAnswers;
  readonly missing: readonly MissingAnswer[];
  readonly options: SetupOptions;
}

/**
 * Asks a person at the terminal for the missing answers, and adds them. Throws CommandError if there is no terminal.
 */
async function askForMissing(context: CommandContext, source: ConfigText, asked: SetupInput): Promise<GivenAnswers> {
  const { given, missing, options } = asked;
  if (!context.input.isTTY || !context.errorOutput.isTTY) {
    const lines = missing.map((name) => `  ${missingAnswerAdvice[name]}`);
    throw new CommandError(exitCodes.usage, ['nothing was written, these answers are missing:', ...lines].join('\n'));
  }
  // Questions go to standard error, since standard output, with the result, may be redirected into a file.
  const prompt = new Prompt(context.input, context.errorOutput);
  try {
    const offers = (): Promise<DatabaseOffers> => findDatabaseOffers(context, options);
    return await askMissing(source, { ...given, missing, offers }, prompt);
  } finally {
    // The prompt is stopped before setup creates anything: while it runs, Ctrl-C sends no signal.
    prompt.stop();
  }
}

async function findDatabaseOffers(context: CommandContext, { socketDir }: SetupOptions): Promise<DatabaseOffers> {
  // These two calls run one after the other: while `examineClusters` connects as another user, this process must not
  // read files.
  const examined = await examineClusters(context, socketDir);
  const programs = await findPostgresqlPrograms();
  return {
    local: usableClusters(examined).map(({ cluster, server }) => ({
      cluster,
      text: `PostgreSQL ${server.version} on this machine (${clusterLabel(cluster)}): a role and a database are made in it`,
    })),
    embeddedOffer:
      typeof programs === 'string'
        ? null
        : `a private PostgreSQL ${programs.postgresqlVersion} that Klatch runs in its data directory`,
    unusableReasons: [
      ...examined.map(({ problem }) => problem).filter((problem) => problem !== null),
      ...(typeof programs === 'string' ? [programs] : []),
    ],
  };
}

/**
 * Finds the PostgreSQL programs for an embedded database. Resolves to their version, or to a sentence that says why
 * there are none.
 */
async function findPostgresqlPrograms(): Promise<Pick<PostgresqlPrograms, 'postgresqlVersion'> | string> {
  try {
    return await findPrograms({ binDir: null, clusterMajor: null, clusterDir: '' });
  } catch (error) {
    if (error instanceof EmbeddedError) return error.message;
    throw error;
  }
}

async function warnOfMissingPostgresqlPrograms(context: CommandContext): Promise<void> {
  const programs = await findPostgresqlPrograms();
  if (typeof programs === 'string') printError(context, `warning: ${programs}`);
}

async function chooseClusterAndMakeDatabase(
  context: CommandContext,
  source: ConfigText,
  { given: { answers, database: flags }, options }: Omit<SetupInput, 'missing'>,
): Promise<LocalDatabase> {
  const examined = await examineClusters(context, options.socketDir);
  const port = flags.port ?? configuredDatabasePort(source, context.env);
  const cluster = chooseCluster(examined, { cluster: flags.clusterName, port });
  const serverUid = serverOwnerIfRoot(source, answers, context.env)?.uid ?? null;
  return makeLocalDatabase(source, { cluster, flags, serverUid }, context.env);
}
