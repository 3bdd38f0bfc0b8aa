import type postgres from 'postgres';

/** PostgreSQL's own numbers of the array types that our statements take, by their element. They never change. */
const ARRAY_TYPE_OIDS = { smallint: 1005, int: 1007, text: 1009, bigint: 1016, timestamptz: 1185 } as const;

type DriverArrayTypes = Record<
  `${keyof typeof ARRAY_TYPE_OIDS}Array`,
  postgres.PostgresType<readonly (string | number | null)[]>
>;

/**
 * How arrays are sent. The library can ask the catalogue for this, but it does so beside the caller's query: when the
 * connection is lost in between, its rejection reaches nobody and ends the process. Arrays are not read anywhere:
 * statements answer them as JSON.
 */
export function driverArrayTypes(): DriverArrayTypes {
  const entries = Object.entries(ARRAY_TYPE_OIDS).map(([element, oid]) => [
    `${element}Array`,
    { to: oid, from: [], serialize: arrayLiteral, parse: (text: string) => [text] },
  ]);
  return Object.fromEntries(entries) as DriverArrayTypes;
}

/** An array in PostgreSQL's text form: every element quoted, so that nothing in it has a meaning. */
function arrayLiteral(elements: readonly (string | number | null)[]): string {
  // Most are numbers, and V8 joins those by itself.
  if (elements.every((element) => typeof element === 'number')) return `{${elements.join(',')}}`;
  return `{${elements.map((element) => (element === null ? 'NULL' : quote(element))).join(',')}}`;
}

function quote(element: string | number): string {
  return typeof element === 'number' ? String(element) : `"${element.replace(/["\\]/g, '\\$&')}"`;
}
