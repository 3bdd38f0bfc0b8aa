import { readFile } from 'node:fs/promises';
import { allFaults } from './all.ts';
import type { Report } from './report.ts';

/** One report of the results that earlier runs wrote to `files` with OUT=; throws when they do not belong together. */
export async function readReports(files: readonly string[]): Promise<Report> {
  return mergeReports(await Promise.all(files.map(readReport)));
}

type StoredReport = Omit<Report, 'startedAt'> & { readonly startedAt: string };

async function readReport(file: string): Promise<Report> {
  const stored = JSON.parse(await readFile(file, 'utf8')) as Partial<StoredReport>;
  if (stored.startedAt === undefined || stored.machine === undefined || stored.results === undefined) {
    throw new Error(`${file} holds no results of \`make faults OUT=${file}\``);
  }
  return { ...(stored as StoredReport), startedAt: new Date(stored.startedAt) };
}

/** In the order of the report. Every fault has to be there once, with all its runs, of one commit and one machine. */
export function mergeReports(parts: readonly Report[]): Report {
  const [first] = parts;
  if (first === undefined) throw new Error('no results: name the files that runs wrote with OUT=');
  if (parts.some(({ quick }) => quick))
    throw new Error('results of a run with QUICK=1 do not make a page: run it without');
  const machines = [...new Set(parts.map(({ machine }) => JSON.stringify(machine)))];
  if (machines.length > 1) {
    throw new Error(`results of different commits or machines do not make one page: ${machines.join(' and ')}`);
  }
  const results = parts.flatMap((part) => part.results);
  const ordered = allFaults.map(({ name }) => {
    const found = results.filter((result) => result.name === name);
    if (found.length !== 1)
      throw new Error(`${found.length} of the files have results of ${name}: one has to have them`);
    return found[0]!;
  });
  return {
    ...first,
    startedAt: new Date(Math.min(...parts.map(({ startedAt }) => startedAt.getTime()))),
    seconds: parts.reduce((sum, { seconds }) => sum + seconds, 0),
    runCount: parts.length,
    results: ordered,
  };
}
