import type postgres from 'postgres';

/** PostgreSQL's type ids of the array types in Klatch's statements, by their element. They never change. */
const ARRAY_TYPE_OIDS = { smallint: 1005, int: 1007, text: 1009, bigint: 1016, timestamptz: 1185 } as const;

type DriverArrayTypes = Record<
  `${keyof typeof ARRAY_TYPE_OIDS}Array`,
  postgres.PostgresType<readonly (string | number | null)[]>
>;

/**
 * Tells the postgres library how to send arrays. The library can query the catalogue for this, but it does so with a
 * query of its own beside the caller's. If the connection is lost meanwhile, nobody handles the rejection of that
 * query, which ends the process. Klatch reads no arrays: statements return them as JSON.
 */
export function driverArrayTypes(): DriverArrayTypes {
  const entries = Object.entries(ARRAY_TYPE_OIDS).map(([element, oid]) => [
    `${element}Array`,
    { to: oid, from: [], serialize: arrayLiteral, parse: (text: string) => [text] },
  ]);
  return Object.fromEntries(entries) as DriverArrayTypes;
}

/** An array in PostgreSQL's text form: every text in it is quoted, so that no character in the text is special. */
function arrayLiteral(elements: readonly (string | number | null)[]): string {
  // Most arrays are numbers, which V8 joins quickly.
  if (elements.every((element) => typeof element === 'number')) return `{${elements.join(',')}}`;
  let literal = '{';
  for (const element of elements) {
    if (literal !== '{') literal += ',';
    literal += element === null ? 'NULL' : typeof element === 'string' ? quote(element) : element.toString();
  }
  return `${literal}}`;
}

const SPECIAL = /["\\]/;
const EACH_SPECIAL = /["\\]/g;

function quote(text: string): string {
  // Nearly no text has a special character, and the replacement takes longer than the test for one.
  return SPECIAL.test(text) ? `"${text.replace(EACH_SPECIAL, '\\$&')}"` : `"${text}"`;
}
