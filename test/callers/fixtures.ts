import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CallerFormat, CallerRequest } from '../../src/callers/core/caller-format.ts';
import type { AlertUpdate, EncodedFile } from '../../src/callers/core/message-form.ts';
import type { JsonObject } from '../../src/callers/core/values.ts';

/** A request as a program sends it. The file `<name>.txt` beside it has the expected text. */
export interface Fixture {
  /** The program with its version, and where the payload is documented. */
  readonly source: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly body: JsonObject;
  /** True: another format has the same shape, so only the suffix of the webhook URL selects this format. */
  readonly needsSuffix?: boolean;
  readonly label?: string;
  readonly alert?: AlertUpdate;
  readonly files?: readonly EncodedFile[];
  /** The name of an event that the format recognises and does not show. It replaces the text. */
  readonly ignored?: string;
}

const folderOf = ({ name }: CallerFormat): string => join(import.meta.dirname, 'fixtures', name);

/** The paths of the fixtures in the folder of the format and below. */
export function fixtureNames(format: CallerFormat): string[] {
  const names = readdirSync(folderOf(format), { encoding: 'utf8', recursive: true });
  return names.filter((name) => name.endsWith('.json'));
}

export function readFixture(format: CallerFormat, name: string): Fixture {
  return JSON.parse(readFileSync(join(folderOf(format), name), 'utf8')) as Fixture;
}

/** The expected text of a fixture, with the line feed at the end of its file. */
export function readExpectedText(format: CallerFormat, name: string): string {
  return readFileSync(join(folderOf(format), name.replace(/\.json$/, '.txt')), 'utf8');
}

export function requestOf({ body, headers = {}, query = '' }: Fixture): CallerRequest {
  return { body, headers, query: new URLSearchParams(query) };
}
