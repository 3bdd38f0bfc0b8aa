import type { Command } from 'commander';
import { checkFiles } from '../../operations/server/files-check.ts';
import { type CommandContext, print, printJson } from '../core/context.ts';
import { callServer } from '../core/control-client.ts';
import { configuredDataDir } from '../core/data-dir.ts';
import { exitCodes } from '../core/exit-codes.ts';
import { CommandError } from '../core/failure.ts';
import { formatTable } from '../../../client/terminal/table.ts';
import { configFlag, withExamples, withJson } from '../core/options.ts';
import { addFilesAdopt } from './files-adopt.ts';

type CheckPage = Awaited<ReturnType<(typeof checkFiles)['run']>>;
type FileProblem = CheckPage['found'][number];

interface CheckOptions {
  readonly repair?: boolean;
  readonly json?: boolean;
}

/** The most problems that are listed one by one. The counts include all problems. */
const MAX_SHOWN_PROBLEMS = 10_000;
/** The time-out for one page of the check: it may remove up to a thousand files from a slow store. */
const PAGE_TIMEOUT_MS = 10 * 60_000;

const PROBLEM_LABELS: Readonly<Record<FileProblem['problem'], string>> = {
  stray: 'file without a row',
  lost: 'row without its file',
  size: 'file of another length',
  again: 'lost file that is there again',
  upload: 'left over of an upload',
  usage: 'count that is wrong',
};

export function addFiles(program: Command, context: CommandContext): void {
  const files = program.command('files').description('look after the files of messages');
  withExamples(files, ['klatch files check', 'klatch files check --repair', 'klatch files adopt']);
  addFilesAdopt(files, context);
  const checkCommand = files
    .command('check')
    .description('compare the database with the store of files; ends with 1 when something does not fit and stays so')
    .option('--repair', 'remove what has no row, mark what is lost, and count anew')
    .action((options: CheckOptions, self: Command) => checkStoredFiles(context, configFlag(self), options));
  withExamples(withJson(checkCommand), ['klatch files check', 'klatch files check --repair --json']);
}

/** The totals of all pages of the check. */
interface CheckTotals {
  storeDescription: string;
  files: number;
  uploads: number;
  readonly found: FileProblem[];
  problems: number;
  repaired: number;
  isStoreEmpty: boolean;
}

async function checkStoredFiles(
  context: CommandContext,
  configOption: string | undefined,
  options: CheckOptions,
): Promise<void> {
  const { repair = false, json } = options;
  const result = await checkAllPages(configuredDataDir(context, configOption), repair);
  const { storeDescription, files, uploads, found, problems, repaired, isStoreEmpty: isEmpty } = result;
  const unrepairedCount = problems - repaired;
  if (json === true) {
    printJson(context, {
      ok: unrepairedCount === 0,
      store: storeDescription,
      files,
      uploads,
      problems,
      repaired,
      found,
    });
  } else {
    print(context, ...checkLines(result));
  }
  if (isEmpty) {
    const sentence = `${storeDescription} has no file at all, so that lost ones were not marked: is it the right one, and there?`;
    throw new CommandError(exitCodes.operationFailed, sentence);
  }
  if (unrepairedCount === 0) return;
  const advice = repair ? '' : ': `klatch files check --repair` repairs them';
  throw new CommandError(
    exitCodes.operationFailed,
    `${unrepairedCount} problem${unrepairedCount === 1 ? '' : 's'} left${advice}`,
  );
}

async function checkAllPages(dataDir: string, repair: boolean): Promise<CheckTotals> {
  const result: CheckTotals = {
    storeDescription: '',
    files: 0,
    uploads: 0,
    found: [],
    problems: 0,
    repaired: 0,
    isStoreEmpty: false,
  };
  for (let after: string | null = null; ;) {
    const input = { repair, after };
    const page: CheckPage = await callServer({ dataDir, operation: checkFiles, input, timeoutMs: PAGE_TIMEOUT_MS });
    result.storeDescription = page.store;
    result.files += page.files;
    result.uploads += page.uploads;
    result.found.push(...page.found.slice(0, MAX_SHOWN_PROBLEMS - result.found.length));
    result.problems += page.found.length;
    result.repaired += page.found.filter((finding) => finding.repaired).length;
    result.isStoreEmpty ||= page.empty;
    if (page.next === null) return result;
    after = page.next;
  }
}

function checkLines({ storeDescription, files, uploads, found, problems, repaired }: CheckTotals): string[] {
  const checkedSummary = `Looked at ${countWithNoun(files, 'file')} and ${countWithNoun(uploads, 'upload')} in ${storeDescription}.`;
  if (problems === 0) return [checkedSummary, 'Everything fits.'];
  const rows = found.map(({ problem, file, bytes, repaired: isRepaired }) => [
    PROBLEM_LABELS[problem],
    file ?? '-',
    bytes ?? '-',
    isRepaired ? 'repaired' : 'stays',
  ]);
  const more = problems > found.length ? [`… and ${problems - found.length} more`] : [];
  const summary = `${countWithNoun(problems, 'problem')}, ${repaired} repaired.`;
  return [...formatTable(['WHAT', 'FILE', 'BYTES', 'NOW'], rows), ...more, '', checkedSummary, summary];
}

function countWithNoun(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
