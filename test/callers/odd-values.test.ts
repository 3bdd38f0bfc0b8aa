import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { isIgnored } from '../../src/callers/core/message-form.ts';
import { renderText } from '../../src/callers/core/render-text.ts';
import { isObject, type JsonObject } from '../../src/callers/core/values.ts';
import { formats } from '../../src/callers/formats.ts';

const FOLDER = join(import.meta.dirname, 'fixtures');
const ODD_VALUES: readonly unknown[] = [
  null,
  true,
  -1.5,
  '',
  'x',
  '\ud800\n@ada',
  [],
  [null, [1], { a: 1 }],
  {},
  { toString: 1 },
];
const MAX_DEPTH = 4;

/** The body with each of its values replaced, one at a time. */
function* mutated(value: unknown, odd: unknown, depth = 0): Generator {
  yield odd;
  if (depth === MAX_DEPTH) return;
  if (Array.isArray(value)) {
    for (const member of mutated(value[0], odd, depth + 1)) yield [member, ...value.slice(1)];
  } else if (isObject(value)) {
    for (const [key, member] of Object.entries(value)) {
      for (const each of mutated(member, odd, depth + 1)) yield { ...value, [key]: each };
    }
  }
}

describe.each(formats)('$name', (format) => {
  const folder = join(FOLDER, format.name);
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'));

  test.each(names)('reads %s with any value in any place', (name) => {
    const fixture = JSON.parse(readFileSync(join(folder, name), 'utf8')) as {
      body: JsonObject;
      headers?: Record<string, string>;
    };
    for (const odd of ODD_VALUES) {
      for (const body of mutated(fixture.body, odd)) {
        if (!isObject(body)) continue;
        const request = { body, headers: fixture.headers ?? {}, query: new URLSearchParams() };
        format.matches(request);
        const result = format.read(request);
        if (isIgnored(result)) expect(result.ignored).not.toBe('');
        else expect(renderText(result).isWellFormed()).toBe(true);
      }
    }
  });
});
