import { describe, expect, test } from '@jest/globals';
import type { CallerFormat } from '../../src/callers/core/caller-format.ts';
import { MAX_CARDS_BYTES, messageCardsJson } from '../../src/callers/core/message-cards.ts';
import { isIgnored } from '../../src/callers/core/message-form.ts';
import { renderText } from '../../src/callers/core/render-text.ts';
import type { JsonObject } from '../../src/callers/core/values.ts';
import { detectFormat, formats } from '../../src/callers/formats.ts';
import { fixtureNames, readFixture, requestOf, type Fixture } from './fixtures.ts';

const STRANGE_VALUES: readonly unknown[] = [
  null,
  true,
  -1,
  '',
  '\ud800\u0000',
  [],
  {},
  [[null]],
  [{}],
  [null, [1], { a: 1 }],
  { toString: 1 },
  { a: { b: 1 } },
  'x'.repeat(50_000),
];
const MAX_PATHS = 40;
/** The most characters of an alert's key, and of a fingerprint. */
const MAX_KEY_LENGTH = 500;

type Path = readonly (string | number)[];

function pathsOf(value: unknown, path: Path = []): Path[] {
  const inner =
    typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([name, each]) => pathsOf(each, [...path, name]))
      : [];
  return path.length === 0 ? inner : [path, ...inner];
}

function withValue(value: unknown, [name, ...rest]: Path, replacement: unknown): unknown {
  if (name === undefined) return replacement;
  const copy: Record<string, unknown> = Array.isArray(value) ? ([...value] as never) : { ...(value as object) };
  copy[name] = withValue(copy[name], rest, replacement);
  return copy;
}

interface StoredContent {
  readonly text: string;
  /** The cards as JSON; empty if there are none. */
  readonly cards: string;
  /** The key of the alert and the fingerprints below it. */
  readonly alertKeys: readonly string[];
}

function readContent(format: CallerFormat, fixture: Fixture): StoredContent {
  const request = requestOf(fixture);
  detectFormat(request);
  const result = format.read(request);
  if (isIgnored(result)) return { text: result.ignored, cards: '', alertKeys: [] };
  const { alert } = result;
  const alertKeys = alert === null ? [] : [alert.key, ...alert.alerts.map(({ fingerprint }) => fingerprint)];
  return { text: renderText(result), cards: messageCardsJson(result) ?? '', alertKeys };
}

const hasStorableCharacters = (text: string): boolean => text.isWellFormed() && !text.includes('\u0000');

/**
 * Whether PostgreSQL accepts the content, and the content is within the limits. In JSON, characters that PostgreSQL
 * refuses are escaped.
 */
const isStorable = ({ text, cards, alertKeys }: StoredContent): boolean =>
  hasStorableCharacters(text) &&
  text.length <= 40_000 &&
  alertKeys.every((key) => hasStorableCharacters(key) && key.length <= MAX_KEY_LENGTH) &&
  !/\\u(?:0000|d[89a-f])/.test(cards) &&
  Buffer.byteLength(cards) <= MAX_CARDS_BYTES;

/** Checks that each format still reads the rest of a real payload when any one of its values is replaced. */
describe.each(formats)('$name', (format) => {
  test.each(fixtureNames(format))('reads %s with each of its values replaced', (name) => {
    const fixture = readFixture(format, name);
    const paths = pathsOf(fixture.body).slice(0, MAX_PATHS);
    const bodies = paths.flatMap((path) => STRANGE_VALUES.map((strange) => withValue(fixture.body, path, strange)));
    const contents = bodies.map((body) => readContent(format, { ...fixture, body: body as JsonObject }));
    expect(contents.filter((content) => !isStorable(content))).toEqual([]);
  });
});
