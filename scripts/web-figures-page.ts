import { figure, measuredRows } from '../bench/web/report.ts';
import type { WebResult } from '../bench/web/result.ts';
import { isGoalMet, isMet, judged, WHY_RATIOS, type Measure, type Row, type RowId } from '../bench/web/rows.ts';

const HEAD = ['What', 'Klatch', 'Bare page', 'Ratio', 'The Lounge', 'Bar', 'Met', 'Goal', 'How far'];

/** Renders the page of a complete run of `make bench ONLY=web`. */
export function renderWebFigures(result: WebResult): string {
  const rows = measuredRows(result.measures);
  const table = [HEAD, HEAD.map((_, n) => (n === 0 ? '---' : '--:')), ...rows.map(cellsOf)];
  const moved = rows.flatMap(([, row]: [RowId, Row, Measure]) => {
    const { what, bar, unit, isRatio, formerBar, whyMoved } = row;
    if (formerBar === undefined) return [];
    const reason = whyMoved === undefined ? '' : `: ${whyMoved}`;
    return [`- ${what}: ${figure(bar)} ${isRatio ? 'times the bare page' : unit}, formerly ${formerBar}${reason}`];
  });
  return `${[
    '# The browser client in figures',
    '<!-- Made by scripts/docs.ts from bench/web/result.json. Do not edit. -->',
    introduction(result),
    table.map((cells) => `| ${cells.join(' | ')} |`).join('\n'),
    '## What the figures are',
    explanation(),
    '## Bars that have moved',
    WHY_RATIOS,
    moved.join('\n'),
  ].join('\n\n')}\n`;
}

function introduction({ date, machine, chromium, lounge }: WebResult): string {
  const { cores, memoryGiB, kernel, node, postgresql, commit } = machine;
  return `\`make bench ONLY=web\` made this page on ${date}, of commit ${commit}: ${cores} cores and ${memoryGiB} GiB for the browser, the servers and PostgreSQL together, ${kernel}, Node ${node}, PostgreSQL ${postgresql}, Debian's Chromium ${chromium} without a window and without a GPU, The Lounge ${lounge} with Debian's ngircd. All traffic is on loopback.`;
}

function explanation(): string {
  return `- Times of starts, switches and own messages are medians of 7 rounds; the ratio is the median of the rounds' ratios. Each round begins with another page.
- The bare page has no library. It fetches 50 messages of the same server and shows each as one line of text.
- A conversation is shown when its last message and the eighth from the end are. Until November 27, 2026 the last one sufficed, which The Lounge shows before it has the others: a switch took The Lounge 23 ms then, and about 80 ms since.
- "Painted" is the end of the frame that shows it. The browser draws 60 frames a second, so a time can be 16 ms longer than the work.
- "Cached" is a page that the browser has opened three times, with its compiled scripts.
- Fast 3G is Chromium's own: 563 ms for a request, 189 KB/s down.
- The other rows are of one run. The Lounge has no figure where it does not do the same: it keeps 1,500 messages of a conversation. At 1,000 messages a second its page did not show the last one within 120 s.
- Work of the main thread is processor time.
- "Met" counts The Lounge too: where both do the same, Klatch has to be at least as fast.`;
}

function cellsOf([id, row, measure]: [RowId, Row, Measure]): string[] {
  const unit = row.unit === '' ? '' : ` ${row.unit}`;
  const withUnit = (value: number | undefined): string => (value === undefined ? '' : `${figure(value)}${unit}`);
  const limit = (value: number | null): string =>
    value === null ? '' : row.isRatio === true ? `${figure(value)} × bare` : withUnit(value);
  return [
    row.what,
    withUnit(measure.klatch),
    withUnit(measure.bare),
    figure(measure.ratio),
    withUnit(measure.lounge),
    limit(row.bar),
    row.bar === null ? '' : isMet(id, measure) ? 'yes' : '**no**',
    limit(row.goal),
    distance(id, row, measure),
  ];
}

/** The distance from the goal: the value as a multiple of it, or the difference from a goal of 0. */
function distance(id: RowId, { goal, unit }: Row, measure: Measure): string {
  if (goal === null) return '';
  if (isGoalMet(id, measure) === true) return 'reached';
  const over = judged(id, measure) - goal;
  return goal === 0 ? `${figure(over)} ${unit} above` : `${figure(judged(id, measure) / goal)} times`;
}
