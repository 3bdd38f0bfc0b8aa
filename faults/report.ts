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
  const withoutRow =
    missing.length === 0 ? '' : `, ${missing.length} never run for this report (${missing.join(', ')})`;
  const table = alignedTable([PAGE_HEAD, ...rows.map(({ cells, commit }) => [...cells, commit])]);
  return `# Fault report

Made by \`make faults\`; do not edit. Every row is one fault, which the suite injects many times into one or two real server processes with their database. During the fault eight callers post to four groups. The hooks of each group forward the posts to receivers, which record everything that arrives. Each group has one hook to a receiver that always works. Three more hooks lead to a receiver that can fail: strict, strict with \`batch: 10\`, and \`order: none\`.

- Date: ${[...new Set([dates[0], dates.at(-1)])].join(' to ')}; each row names the commit that was run
${machines.map((machine) => `- Machine: ${machine}`).join('\n')}
- Result: ${countOutcomes(rows.map(({ outcome }) => outcome))}${withoutRow}

${table}
${notes.length === 0 ? '' : `\n${notes.map((note) => `- ${note}`).join('\n')}\n`}
## How to read it

- **Messages**: posts that the server answered with 200. Callers repeat a post with the same \`Idempotency-Key\` until the answer is 200. If the server writes a post twice, the fault counts as failed.
- **Lost**: posts that the server answered with 200 and that did not arrive at each hook of their group, counted for each hook.
- **Out of order**: messages that arrived for the first time after a later message had arrived, in a lane of \`order: strict\`. A delivery that the receiver refused also counts as an arrival in this column.
- **Revs with two texts**: this column counts contradictions between deliveries of one change. A change of a group has the same \`rev\` and epoch in every delivery to a hook or a live client. A contradiction is a delivery with another message or another text than the first delivery of that change.
- **Duplicates**: messages that a receiver had accepted and got again, in all lanes together. A receiver accepts a delivery when it answers with a complete status 2xx. A repeat of a delivery that the receiver refused or did not answer is no duplicate. After each kill Klatch may repeat one unsettled batch of a lane (8 deliveries). After a fault of the receiver it may repeat nothing. "Of a lane in a run" shows the lane that came nearest to its allowed number, with its most duplicates in one run. Allowed are 8 for a strict lane, ten times as many messages with \`batch: 10\`, and 32 more with \`order: none\` (16 in flight, 16 later ones that completed before them).
- **First 200 after**: the longest time of a run, after the fault began, in which the server answered no post with 200. The cell has the median and the worst of the runs.
- **Each hook again after**: the time from the end of the fault until every hook has received a new message. The cell has the median and the worst of the runs. If the fault kills a process, the fault ends with the kill, so the time includes the start of the process. If the suite itself has to restore a server or a path, the fault ends when the server or path is back.
- **All caught up after**: the time from the end of the fault until every hook has also received all messages that were posted before the end of the fault.

Rows that begin with "cluster" use the three machines that [cluster.md](cluster.md) describes, as network namespaces, and two Klatch servers. The first server connects through HAProxy, and the second server has the list of database servers. One more hook of each group asks for \`message.updated\`. Live clients follow all groups and edit messages. Between two runs the callers pause until all lanes have caught up (before 2026-11-26 they continued to post). The fault ends with the first post that the server accepts again. A cluster row fails in each of these cases:

- A live client misses a change.
- The hook that asks for edits misses an edit, in any epoch (before 2026-11-27 only in epoch 0).
- A server reports lost history.

In the row "kill -9 of the server among real callers" two clustered Alertmanagers report alerts that begin, get a second instance and are resolved. The suite also replays events of GitHub, each with its delivery id, until the answer is 200. The row fails if an alert has other messages than it should have, or if these do not show its last state. The row also fails if an event appears twice or not at all.

In the rows with a browser with three tabs, a real Chromium shows one group in three tabs of one account, through a proxy. Callers post into this group in addition to the four groups of the table. Each tab writes and sends a text every 0.4 s. "kill -9" closes one tab while texts wait in this tab, and opens the tab again. "Offline" disconnects the network. When the network is back, one of three things happens in turn: the delayed bytes arrive, all connections end, or all connections stay silent. After each run the suite scrolls through each tab, and during this time nobody posts or sends. A row fails in each of these cases:

- At any change of the page, a tab does not show each message of the database once, in order and with its text.
- The database does not have each text that a tab sent once, in the order in which the texts were written.
- The IndexedDB of the browser does not have each waiting text once and in order, or still has a text that was sent.
- A draft in another group is lost.
- A page shows an error after the run.

The suite runs with short delays of retries (50, 100 and 200 ms). Receivers that hang or are slow have to answer within 6 s, and the time-outs for a blackholed database are shorter than usual. Leases have their usual 10 s. In addition to the conditions of the table, a row fails in each of these cases:

- The server ends by itself.
- A caller gets another answer than 200 or 503.
- The server follows a redirect, or connects to a private address.
- The server makes an attempt before the time of a \`Retry-After\` has passed.
- Another node does not take over within 15 s, and 8 s more for the pauses of a busy machine.
`;
}
