import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { isIgnored, type AlertUpdate, type EncodedFile } from '../../src/callers/core/message-form.ts';
import { renderText } from '../../src/callers/core/render-text.ts';
import type { JsonObject } from '../../src/callers/core/values.ts';
import { detectFormat, formats } from '../../src/callers/formats.ts';

/** A request as a program sends it; the text that it must become stands beside it, in `<name>.txt`. */
interface Fixture {
  /** The program and its version, and where its payload is written down. */
  readonly source: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly body: JsonObject;
  /** True: its shape is another format's too, so that only the suffix of the address leads to this one. */
  readonly needsSuffix?: boolean;
  readonly label?: string;
  readonly alert?: AlertUpdate;
  readonly files?: readonly EncodedFile[];
  /** In place of the text: the event that is understood and not shown. */
  readonly ignored?: string;
}

const FOLDER = join(import.meta.dirname, 'fixtures');

describe.each(formats)('$name', (format) => {
  const folder = join(FOLDER, format.name);
  const names = readdirSync(folder, { encoding: 'utf8', recursive: true }).filter((name) => name.endsWith('.json'));

  test.each(names)('reads %s', (name) => {
    const fixture = JSON.parse(readFileSync(join(folder, name), 'utf8')) as Fixture;
    const request = {
      body: fixture.body,
      headers: fixture.headers ?? {},
      query: new URLSearchParams(fixture.query ?? ''),
    };
    if (fixture.needsSuffix !== true) expect(detectFormat(request)?.name).toBe(format.name);
    const result = format.read(request);
    if (isIgnored(result)) {
      expect(result).toEqual({ ignored: fixture.ignored });
      return;
    }
    expect(fixture.ignored).toBeUndefined();
    expect(`${renderText(result)}\n`).toBe(readFileSync(join(folder, name.replace(/\.json$/, '.txt')), 'utf8'));
    if (fixture.label !== undefined) expect(result.label).toBe(fixture.label);
    if (fixture.alert !== undefined) expect(result.alert).toEqual(fixture.alert);
    if (fixture.files !== undefined) expect(result.files).toEqual(fixture.files);
  });

  test('has fixtures', () => expect(names.length).toBeGreaterThan(0));
});
