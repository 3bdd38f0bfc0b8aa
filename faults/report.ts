import { median } from '../bench/support/report.ts';
import type { FaultResult, RunTimes } from './fault.ts';
import type { Machine } from './machine.ts';

/** The machine and the time of a run of the suite. */
export interface RunFacts {
  readonly startedAt: Date;
  readonly machine: Machine;
}

/** A row of the report page, stored in `faults/report.json`: it stays until the fault runs again. */
export interface ReportRow {
  readonly name: string;
  /** The cells of the table, from the title on. */
  readonly cells: readonly string[];
  readonly notes: readonly string[];
  readonly outcome: 'survived' | 'failed' | 'not run';
  readonly commit: string;
  /** The day of the run: "2026-11-24". */
  readonly date: string;
  /** Cores, memory, kernel and versions in words, for a line of the page. */
  readonly machine: string;
}

const HEAD = [
  'Fault',
  'Runs',
  'Messages',
  'Lost',
  'Out of order',
  'Revs with two texts',
  'Duplicates',
  'Of a lane in a run (allowed)',
  'First 200 after',
  'Each hook again after',
  'All caught up after',
];
const PAGE_HEAD = [...HEAD, 'Commit'];

/** The rows as aligned Markdown, which is readable in a terminal too. */
export function tableOf(results: readonly FaultResult[]): string {
  return alignedTable([HEAD, ...results.map(cellsOf)]);
}

function alignedTable(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, n) => (n === 0 ? cell.padEnd(widths[n]!) : cell.padStart(widths[n]!))).join(' | ')} |`;
  const rule = `| ${widths.map((width, n) => (n === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`;
  return [line(rows[0]!), rule, ...rows.slice(1).map(line)].join('\n');
}

function cellsOf(result: FaultResult): string[] {
  const { title, runs, messages, lost, outOfOrder, changesWithTwoTexts, duplicates } = result;
  if (result.notRun !== null) return [title, 'not run', ...HEAD.slice(2).map(() => '')];
  const counts = [runs, messages, lost, outOfOrder, changesWithTwoTexts, duplicates].map(String);
  const of = (pick: (times: RunTimes) => number): string => timesOf(result.recoveries.map(pick));
  const lanes = `${result.worstDuplicates} (${result.allowedDuplicates})`;
  const times = [of(({ longestPauseMs }) => longestPauseMs), of(({ firstMs }) => firstMs), of(({ allMs }) => allMs)];
  return [title, ...counts, lanes, ...times];
}

/** The median and the maximum, in seconds. */
function timesOf(ms: readonly number[]): string {
  if (ms.length === 0) return '';
  return `${seconds(median(ms))}, ${seconds(Math.max(...ms))} s`;
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(2);
}

/** Notes on single rows: the reason why a fault was not run or failed, and remarks. */
export function notesOf(results: readonly FaultResult[]): string[] {
  return results.flatMap(({ title, notRun, violations, remark }) => [
    ...(notRun === null ? [] : [`${title}: not run. ${notRun}`]),
    ...violations.map((violation) => `${title}: FAILED: ${violation}`),
    ...(remark === '' ? [] : [`${title}: ${remark}`]),
  ]);
}

function outcomeOf({ violations, notRun }: FaultResult): ReportRow['outcome'] {
  if (violations.length > 0) return 'failed';
  return notRun === null ? 'survived' : 'not run';
}

/** For example: `3 faults survived, 1 failed, 1 not run`. */
export function summaryOf(results: readonly FaultResult[]): string {
  return countOutcomes(results.map(outcomeOf));
}

function countOutcomes(outcomes: readonly ReportRow['outcome'][]): string {
  const count = (wanted: ReportRow['outcome']): number => outcomes.filter((outcome) => outcome === wanted).length;
  return `${count('survived')} faults survived, ${count('failed')} failed, ${count('not run')} not run`;
}

export function rowOf(result: FaultResult, { startedAt, machine }: RunFacts): ReportRow {
  const { cores, memoryGiB, kernel, postgresql, node } = machine;
  return {
    name: result.name,
    cells: cellsOf(result),
    notes: notesOf([result]),
    outcome: outcomeOf(result),
    commit: machine.commit,
    date: startedAt.toISOString().slice(0, 10),
    machine: `${cores} cores, ${memoryGiB} GiB of memory, ${kernel}; PostgreSQL ${postgresql}, Node.js ${node}`,
  };
}

/** The row of each fault, from `newer` if it is there, in the order of `names`. Rows of removed faults are dropped. */
export function mergedRows(
  older: readonly ReportRow[],
  newer: readonly ReportRow[],
  names: readonly string[],
): ReportRow[] {
  const rows = new Map([...older, ...newer].map((row) => [row.name, row]));
  return names.flatMap((name) => rows.get(name) ?? []);
}

/** The text of docs/fault-report.md. `names`: all faults, also those without a row. */
export function pageOf(rows: readonly ReportRow[], names: readonly string[]): string {
  const missing = names.filter((name) => !rows.some((row) => row.name === name));
  const dates = rows.map(({ date }) => date).sort();
  const notes = rows.flatMap((row) => row.notes);
  const machines = [...new Set(rows.map(({ machine }) => machine))];
  const withoutRow = missing.length === 0 ? '' : `, ${missing.length} without a row (${missing.join(', ')})`;
  const table = alignedTable([PAGE_HEAD, ...rows.map(({ cells, commit }) => [...cells, commit])]);
  return `# Fault report

Made by \`make faults\`; do not edit. Every row is one fault, struck again and again at a real server process (or two) with its database, while eight callers post to four groups and the hooks of each group forward what is posted to receivers that take down everything that arrives. A group has a hook at a receiver that is never at fault, and three at the one that is: strict, strict with \`batch: 10\`, and \`order: none\`.

- Date: ${[...new Set([dates[0], dates.at(-1)])].join(' to ')}; each row names the commit that was run
${machines.map((machine) => `- Machine: ${machine}`).join('\n')}
- Result: ${countOutcomes(rows.map(({ outcome }) => outcome))}${withoutRow}

${table}
${notes.length === 0 ? '' : `\n${notes.map((note) => `- ${note}`).join('\n')}\n`}
## How to read it

- **Messages**: posts that were answered 200. Callers repeat a post with its \`Idempotency-Key\` until it is; a post that is written twice all the same fails the row.
- **Lost**: posts that were answered 200 and did not arrive at each hook of their group, counted per hook.
- **Out of order**: first arrivals of a message after the first arrival of a later one, in a lane of \`order: strict\`. Arrivals that the receiver refused count as arrivals here.
- **Revs with two texts**: changes of a group that arrived, at hooks or live clients, a second time under the same \`rev\` (and epoch) as another message or with another text.
- **Duplicates**: messages that a receiver had taken and got again, all lanes together. A receiver takes a delivery when it answers with a complete status 2xx; repeats of what it refused, or left without an answer, are not duplicates. For each kill one unsettled batch of a lane (8 deliveries) may come again; for a fault of the receiver nothing may. "Of a lane in a run" is the most that one lane had in one run, of the lane that came nearest to what it may have: 8 for a strict one, ten times that in messages with \`batch: 10\`, and 32 more (16 in flight, 16 that overtook them) with \`order: none\`.
- **First 200 after**: the longest time of a run, from the strike on, in which no post was answered 200; median and worst of the runs.
- **Each hook again after**: from the end of the fault to the first new message at the hook that waited longest for one; median and worst of the runs. Where a process is killed the fault ends with the kill, so that its start is part of the time; a server or path that the suite has to bring back has to be back.
- **All caught up after**: to the moment at which everything that was posted before the end of the fault had arrived at every hook too.

Rows that begin with "cluster" have three machines as [cluster.md](cluster.md) describes them, as network namespaces, and two servers, the first one through HAProxy and the second one with the list of database servers. One more hook of each group asks for \`message.updated\`; live clients follow all groups and edit messages. Between two runs the callers pause until all lanes have caught up (since 2026-11-26; before, they posted on). The fault ends with the first post that is taken again. What a live client misses, an edit that the hook misses which asks for them (under whatever epoch since 2026-11-27; before, of epoch 0 alone), and history that is said to be lost fail such a row.

In the row "kill -9 of the server among real callers" two clustered Alertmanagers report alerts that begin, get a second instance and are resolved, and events of GitHub are replayed, each with its delivery id until it is answered 200. It fails when an alert is shown by another message than those it should have, or in another state than its last one, and when an event is shown twice or not at all.

In the rows with a browser with three tabs a real Chromium shows one group in three tabs of one account, through a proxy. Callers post into that group beside the four of the table, and a text is written and sent in each tab every 0.4 s. "kill -9" closes one tab while texts wait in it and opens it again. "Offline" takes the network away; afterwards the bytes that were under way arrive, or all connections end, or they stay silent, in turns. After each run nothing is posted or sent until each tab has been scrolled through. A row fails when a tab did not show each message of the database once, in order and with its text, at any change of the page; when a text that was sent in a tab is not stored once, in the order in which it was written; when the browser does not keep each text that waits once and in order in its IndexedDB, or keeps one that was sent; when a draft in another group is gone; and when a page shows an error afterwards.

The suite runs with short retries (50, 100 and 200 ms), a time-out of 6 s for the answers of receivers that hang or are slow, and shorter time-outs for a blackholed database; leases keep their 10 s. Beyond the table a row fails when the server ends by itself, when a caller gets anything but 200 or 503, when a redirect is followed, when a private address is connected to, when an attempt comes before a \`Retry-After\` is over, or when a node is not replaced within 15 s, and 8 s more for the pauses of a busy machine.
`;
}
