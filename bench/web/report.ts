import { report, round } from '../support/report.ts';
import { isGoalMet, isMet, ROWS, type Measure, type Measures, type Row, type RowId } from './rows.ts';

/** The number of decimal places of figures below WHOLE_FROM; figures from there on are whole numbers. */
const DIGITS = 2;
const WHOLE_FROM = 100;

/** The rows of the table that were measured, in its order. */
export function measuredRows(measures: Measures): [RowId, Row, Measure][] {
  return (Object.keys(ROWS) as RowId[]).flatMap((id) => {
    const measure = measures[id];
    return measure === undefined ? [] : [[id, ROWS[id], measure] as [RowId, Row, Measure]];
  });
}

/** The text of a figure in the table; empty if it was not measured. */
export function figure(value: number | null | undefined): string {
  if (value === undefined || value === null) return '';
  if (!Number.isFinite(value)) return 'never';
  return round(value, Math.abs(value) >= WHOLE_FROM ? 0 : DIGITS).toLocaleString('en');
}

/** Prints the table and the line of JSON. True if no bar is missed. */
export function printWeb(measures: Measures): boolean {
  const rows = measuredRows(measures);
  const missed = rows.filter(([id, , measure]) => !isMet(id, measure)).map(([id]) => id);
  const short = rows.filter(([id, , measure]) => isGoalMet(id, measure) === false).map(([id]) => id);
  const { coldStart } = measures;
  report('web: the browser client in Chromium', rows.map(tableRow), {
    bench: 'web',
    ratio: round(coldStart?.ratio ?? 0, 2),
    baseline: 'a bare page that shows 50 messages of the same server; start with nothing cached, less is better',
    rate: round(1_000 / (coldStart?.klatch ?? Number.POSITIVE_INFINITY), 2),
    target: ROWS.coldStart.bar,
    measures: Object.fromEntries(rows.map(([id, , measure]) => [id, rounded(measure)])),
    'bars missed': missed,
    'goals missed': short,
  });
  return missed.length === 0;
}

function tableRow([id, row, measure]: [RowId, Row, Measure]): Record<string, unknown> {
  const isRatio = row.isRatio === true;
  return {
    what: row.what,
    unit: row.unit,
    klatch: figure(measure.klatch),
    bare: figure(measure.bare),
    ratio: figure(measure.ratio),
    'The Lounge': figure(measure.lounge),
    bar: row.bar === null ? '' : `${figure(row.bar)}${isRatio ? ' × bare' : ''}`,
    goal: figure(row.goal),
    met: row.bar === null ? '' : isMet(id, measure) ? 'yes' : 'NO',
  };
}

function rounded(measure: Measure): Record<string, number> {
  return Object.fromEntries(
    Object.entries(measure).map(([name, value]: [string, number]) => [name, round(value, DIGITS)]),
  );
}
