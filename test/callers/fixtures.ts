import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CallerFormat, CallerRequest } from '../../src/callers/core/caller-format.ts';
import type { AlertUpdate, EncodedFile } from '../../src/callers/core/message-form.ts';
import type { JsonObject } from '../../src/callers/core/values.ts';

/** A request as a program sends it; `<name>.txt` beside it has the expected text. */
export interface Fixture {
  /** The program with its version, and the documentation of its payload. */
  readonly source: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly body: JsonObject;
  /** True: another format has the same shape, so that only the suffix of the address selects this one. */
  readonly needsSuffix?: boolean;
  readonly label?: string;
  readonly alert?: AlertUpdate;
  readonly files?: readonly EncodedFile[];
  /** The event that the format recognises and does not show. It replaces the text. */
  readonly ignored?: string;
}

const folderOf = ({ name }: CallerFormat): string => join(import.meta.dirname, 'fixtures', name);

/** The fixtures of the format's folder and its subfolders, as paths below it. */
export function fixtureNames(format: CallerFormat): string[] {
  const names = readdirSync(folderOf(format), { encoding: 'utf8', recursive: true });
  return names.filter((name) => name.endsWith('.json'));
}

export function readFixture(format: CallerFormat, name: string): Fixture {
  return JSON.parse(readFileSync(join(folderOf(format), name), 'utf8')) as Fixture;
}

/** The expected text, with the line feed at the end of its file. */
export function readExpectedText(format: CallerFormat, name: string): string {
  return readFileSync(join(folderOf(format), name.replace(/\.json$/, '.txt')), 'utf8');
}

export function requestOf({ body, headers = {}, query = '' }: Fixture): CallerRequest {
  return { body, headers, query: new URLSearchParams(query) };
}
