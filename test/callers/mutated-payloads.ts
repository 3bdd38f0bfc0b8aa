import { Random } from '../../faults/histories/random.ts';
import type { CallerFormat } from '../../src/callers/core/caller-format.ts';
import { isObject, type JsonObject } from '../../src/callers/core/values.ts';
import { formats } from '../../src/callers/formats.ts';
import { fixtureNames, readFixture, type Fixture } from './fixtures.ts';

const MAX_MUTATIONS = 4;
/** The limits of a body, as in `http.max-body-size` and WEBHOOK_POST_LIMITS. */
const MAX_BYTES = 1_048_576;
const MAX_VALUES = 60_000;

export interface Payload {
  readonly format: CallerFormat;
  readonly fixture: Fixture;
}

/** The fixtures of all formats: payloads as programs send them. */
export function readPayloads(): Payload[] {
  return formats.flatMap((format) =>
    fixtureNames(format).map((name) => ({ format, fixture: readFixture(format, name) })),
  );
}

/**
 * Yields payloads of all formats with values that are replaced, repeated or removed at random, within the limits of a
 * body.
 */
export function* mutatedPayloads(payloads: readonly Payload[], count: number, seed: number): Generator<Payload> {
  const random = new Random(seed);
  for (let made = 0; made < count;) {
    const { format, fixture } = random.pick(payloads);
    const body = mutated(fixture.body, random);
    if (body === null) continue;
    made += 1;
    yield { format, fixture: { ...fixture, body } };
  }
}

/** Returns a mutated body. Null if it exceeds the limits, so that the server would refuse it before it reads it. */
function mutated(body: JsonObject, random: Random): JsonObject | null {
  let result: unknown = body;
  for (let n = random.between(1, MAX_MUTATIONS); n > 0; n -= 1) result = mutateOne(result, random);
  return isObject(result) && isWithinLimits(result) ? result : null;
}

/**
 * Whether the body is within the limits. Counts its size as text without writing the text. Repeated parts are shared,
 * so a body that is small in memory may be far too large as text.
 */
function isWithinLimits(body: unknown): boolean {
  let [values, bytes] = [0, 0];
  const waiting = [body];
  for (let value = waiting.pop(); value !== undefined || waiting.length > 0; value = waiting.pop()) {
    values += 1;
    bytes += typeof value === 'string' ? Buffer.byteLength(value) + 3 : 5;
    if (values > MAX_VALUES || bytes > MAX_BYTES) return false;
    if (typeof value === 'object' && value !== null) {
      bytes += Object.keys(value).reduce((sum, key) => sum + key.length + 4, 0);
      waiting.push(...Object.values(value));
    }
  }
  return true;
}

/** Descends into the value at random, and replaces, repeats or removes the part at which the descent ends. */
function mutateOne(value: unknown, random: Random): unknown {
  const keys = typeof value === 'object' && value !== null ? Object.keys(value) : [];
  if (keys.length === 0 || random.chance(0.15)) return random.chance(0.3) ? repeated(value, random) : strange(random);
  const copy: Record<string, unknown> = Array.isArray(value) ? ([...value] as never) : { ...(value as object) };
  const key = random.pick(keys);
  if (random.chance(0.05)) delete copy[key];
  else copy[key] = mutateOne(copy[key], random);
  return copy;
}

/** A list of 1, 10, 100, 1,000 or 10,000 times the same value. */
function repeated(value: unknown, random: Random): unknown {
  return Array.from({ length: 10 ** random.between(0, 4) }, () => value);
}

const UNITS = ['x', ' ', '\n', '@a ', '<', '*_`', '[a](', '&amp;', '\ud83d\ude00', '- a\n', '<@1|', ':a:', '```'];

function strange(random: Random): unknown {
  if (random.chance(0.5)) return random.pick(UNITS).repeat(10 ** random.between(0, 5));
  if (random.chance(0.1)) return nested(random.between(1, 60));
  return random.pick<unknown>([null, true, -1, 1e308, '', [], {}, [null], [{}], '\ud800\u0000', { text: {} }]);
}

function nested(depth: number): unknown {
  return depth === 0 ? 'x' : { elements: [nested(depth - 1)], text: 'x' };
}
