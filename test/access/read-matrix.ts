import { scopes, type Scope } from '../../src/model/scopes.ts';
import { callerMeanings } from './matrix.ts';

/** The kinds of callers, in the order of the matrix. */
export const callers = Object.keys(callerMeanings) as (keyof typeof callerMeanings)[];
export type Caller = (typeof callers)[number];

/** A line of the matrix. */
export interface AccessRow {
  /** The name of the line: `messages.edit (own)`. */
  readonly label: string;
  readonly operation: string;
  /** The object of the operation, such as `own`; null if it does not matter. */
  readonly about: string | null;
  /** By kind of caller: `yes`, or the error code of the refusal. */
  readonly cells: Readonly<Record<Caller, string>>;
}

/** Parses the text of the matrix. Throws for an incomplete line. */
export function readMatrix(text: string): readonly AccessRow[] {
  const [heading = [], ...lines] = text.trim().split('\n').map(cellsOf);
  // trim() has removed the empty cell above the operations.
  if (heading.filter((cell) => cell !== '').join() !== callers.join()) throw new Error('the heading is not as it was');
  return lines.map(([label = '', ...cells]) => {
    if (cells.length !== callers.length || cells.includes('')) throw new Error(`${label}: a cell is missing`);
    const [, operation, about] = /^([a-z.-]+)(?: \((.+)\))?$/.exec(label) ?? [];
    if (operation === undefined) throw new Error(`${label}: is no name of an operation`);
    const entries = callers.map((caller, index) => [caller, cells[index]]);
    return { label, operation, about: about ?? null, cells: Object.fromEntries(entries) as AccessRow['cells'] };
  });
}

const cellsOf = (line: string): string[] => line.split('|').map((cell) => cell.trim());

/** Parses the table of scopes. Throws for an unknown scope, and for an operation with two. */
export function readScopes(text: string): ReadonlyMap<string, Scope | null> {
  const found = new Map<string, Scope | null>();
  for (const line of text.trim().split('\n')) {
    const [name = '', operations = ''] = cellsOf(line);
    const scope = scopes.find((each) => each === name) ?? null;
    if (scope === null && name !== 'none') throw new Error(`${name}: is no scope`);
    for (const operation of operations.split(' ')) {
      if (found.has(operation)) throw new Error(`${operation}: has two scopes`);
      found.set(operation, scope);
    }
  }
  return found;
}
