import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatTable } from '../../client/terminal/table.ts';
import { root, type Ended, type Workspace } from '../cli/program.ts';

/** The environment variable that makes the tests write the transcripts in the pages again instead of comparing them. */
const WRITE = 'KLATCH_WRITE_TRANSCRIPTS';

/**
 * Runs commands (words with a space between them) and records them as a transcript with their output: both streams, as
 * on a terminal. The exit status follows if it is not 0.
 */
export async function record(workspace: Workspace, commands: readonly string[]): Promise<string> {
  const parts: string[] = [];
  for (const command of commands) {
    const { code, stdout, stderr }: Ended = await workspace.run(command.split(' '));
    const status = code === 0 ? '' : `[exit status ${code}]\n`;
    parts.push(`$ klatch ${command}\n${stdout}${stderr}${status}`);
  }
  return parts.join('\n');
}

/** Aligns the columns of tables again, after values were replaced by examples of other widths. */
export function alignTables(text: string): string {
  return text.replace(/^[A-Z]+(?: [A-Z]+)*(?: {2,}[A-Z]+(?: [A-Z]+)*)+\n(?:\S.* {2,}.*\n)*/gm, (table) => {
    const [heading, ...rows] = table
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/ {2,}/));
    return `${formatTable(heading!, rows).join('\n')}\n`;
  });
}

/** The values of this run that the transcript replaces by the examples of the page. */
export interface Replacements {
  /** The folder of the workspace. */
  readonly folder: string;
  /** Ports by purpose: the server's, then those of others. */
  readonly ports: Readonly<Record<number, string>>;
}

/**
 * Makes all replacements. Rows about the disk and the limit of open files of this machine become those of a machine
 * with enough of both.
 */
export function normalise(text: string, { folder, ports }: Replacements): string {
  const replacements: readonly (readonly [RegExp | string, string])[] = [
    [`${folder}/data`, '/var/lib/klatch'],
    [folder, '/etc/klatch'],
    ...Object.entries(ports).map(([port, example]) => [new RegExp(`:${port}\\b`, 'g'), `:${example}`] as const),
    [/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '2026-11-20T08:00:00.000Z'],
    [/\bschema \d+/g, 'schema 1'],
    [/\bpid \d+/g, 'pid 4711'],
    [/\buid \d+/g, 'uid 998'],
    [/Klatch \d+\.\d+\.\d+\S*?(?=[ ,])/g, 'Klatch 1.0.0'],
    [/PostgreSQL \d+\.\d+(?:\.\d+)?/g, 'PostgreSQL 18.4'],
    [/agrees within \S+ s$/gm, 'agrees within 0.1 s'],
    // Durations such as "3 min 20 s".
    [/(?<![\d.])\b\d+ (?:s|min|h|d)(?: \d+ (?:s|min|h))?(?![\w%])/g, '12 s'],
    [/\b\d+ of \d+ connections/g, '6 of 37 connections'],
    [
      /^(?:ok|warning|ERROR) +(?<row>disk +\S+: ).*\n(?: +-> .*\n)?/gm,
      'ok       $<row>78.0 GiB free (31 %), room for 16000000 files\n',
    ],
    [/^(?:ok|warning|ERROR) +(?<row>open files .*\n)(?: +-> .*\n)?/gm, 'ok       $<row>'],
    [/\bat most \d+ MiB/g, 'at most 4288 MiB'],
    [/\b\d+ files open, /g, '33 files open, '],
    [/\b(?:at most \d+|without a limit)(?=;| for a server)/g, 'at most 65536'],
  ];
  const enough = withoutScarcity(text);
  return replacements.reduce((result, [found, example]) => result.replaceAll(found, example), enough);
}

/** Removes the warnings of a machine that is short of disk or open files from doctor's last line. */
function withoutScarcity(text: string): string {
  const scarce = text.match(/^warning +(?:disk|open files) /gm)?.length ?? 0;
  if (scarce === 0) return text;
  return text
    .replace(/(\d+) warnings?\.$/m, (_, count: string) => {
      const left = Number(count) - scarce;
      return `${left} warning${left === 1 ? '' : 's'}.`;
    })
    .replace('No errors, 0 warnings.', 'Nothing is wrong.');
}

/**
 * Returns the transcript in a page after its mark. With KLATCH_WRITE_TRANSCRIPTS set, it first writes `actual` there.
 */
export function transcriptOf(name: string, actual: string, file = 'docs/operations.md'): string {
  const path = join(root, file);
  const page = readFileSync(path, 'utf8');
  const mark = `<!-- transcript: ${name} -->\n`;
  const at = page.indexOf(mark);
  if (at === -1) throw new Error(`${file} has no transcript "${name}"`);
  const before = page.slice(0, at + mark.length);
  const block = /^\n```console\n([^]*?)```\n/.exec(page.slice(before.length));
  if (process.env[WRITE] !== undefined) {
    const after = page.slice(before.length + (block?.[0].length ?? 0));
    writeFileSync(path, `${before}\n\`\`\`console\n${actual}\`\`\`\n${after}`);
    return actual;
  }
  return block?.[1] ?? '';
}
