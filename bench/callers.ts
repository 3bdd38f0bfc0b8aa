import { fixtureNames, readFixture, requestOf } from '../test/callers/fixtures.ts';
import type { CallerFormat, CallerRequest } from '../src/callers/core/caller-format.ts';
import { messageCardsJson } from '../src/callers/core/message-cards.ts';
import { isIgnored } from '../src/callers/core/message-form.ts';
import { renderText } from '../src/callers/core/render-text.ts';
import { isObject, type JsonObject } from '../src/callers/core/values.ts';
import { detectFormat, formats } from '../src/callers/formats.ts';
import { Random } from '../faults/histories/random.ts';
import { percentile, report, round } from './support/report.ts';

const PAYLOADS = 100_000;
const MAX_MUTATIONS = 4;
/** As `http.max-body-size` and WEBHOOK_POST_LIMITS have it. */
const MAX_BYTES = 1_048_576;
const MAX_VALUES = 60_000;
/** Of a payload as programs send it. */
const P99_TARGET_MS = 1;
/** Of any payload: what one request may hold the event loop for. */
const WORST_TARGET_MS = 25;
const SLOW_MS = 1;
const REPEATS = 3;

interface Measured {
  readonly format: string;
  readonly ms: number;
}

interface Payload {
  readonly format: CallerFormat;
  readonly request: CallerRequest;
}

function readPayloads(): Payload[] {
  return formats.flatMap((format) =>
    fixtureNames(format).map((name) => ({ format, request: requestOf(readFixture(format, name)) })),
  );
}

/** Reading and rendering of foreign payloads, as programs send them and mutated, in this process without HTTP. */
export async function benchCallers(): Promise<boolean> {
  const requests = readPayloads();
  const timed = ({ format, request }: Payload): number => {
    const startedAt = performance.now();
    detectFormat(request);
    const result = format.read(request);
    if (!isIgnored(result)) {
      renderText(result);
      messageCardsJson(result);
    }
    return performance.now() - startedAt;
  };
  // A slow one is read again: the machine may have done something else meanwhile.
  const read = (each: Payload): Measured => {
    let ms = timed(each);
    for (let n = 0; n < REPEATS && ms > SLOW_MS; n += 1) ms = Math.min(ms, timed(each));
    return { format: each.format.name, ms };
  };
  for (let n = 0; n < 20; n += 1) requests.forEach(read);
  const real = Array.from({ length: 10 }, () => requests.map(read)).flat();
  const random = new Random(1);
  const mutated: Measured[] = [];
  while (mutated.length < PAYLOADS) {
    const { format, request } = random.pick(requests);
    const body = mutate(request.body, random);
    if (body !== null) mutated.push(read({ format, request: { ...request, body } satisfies CallerRequest }));
  }
  const p99 = (from: readonly Measured[]): number =>
    round(
      percentile(
        from.map(({ ms }) => ms),
        0.99,
      ),
      3,
    );
  const worst = (from: readonly Measured[]): number =>
    round(
      from.reduce((most, { ms }) => Math.max(most, ms), 0),
      2,
    );
  const rows = formats.map(({ name }) => {
    const of = (from: readonly Measured[]): Measured[] => from.filter(({ format }) => format === name);
    return {
      format: name,
      'p99 as sent, ms': p99(of(real)),
      mutated: of(mutated).length,
      'p99 mutated, ms': p99(of(mutated)),
      'worst mutated, ms': worst(of(mutated)),
    };
  });
  report(`callers: ${real.length} payloads as sent, ${mutated.length} mutated`, rows, {
    bench: 'callers',
    ratio: round(p99(real) / P99_TARGET_MS, 3),
    baseline: 'the target of 1 ms; less is better',
    rate: round(1_000 / (mutated.reduce((sum, { ms }) => sum + ms, 0) / mutated.length)),
    target: 1,
    'p99 as sent, ms': p99(real),
    'worst mutated, ms': worst(mutated),
  });
  return p99(real) <= P99_TARGET_MS && worst(mutated) <= WORST_TARGET_MS;
}

/** Null where the result is past the limits of a body, which the server refuses before it is read. */
function mutate(body: JsonObject, random: Random): JsonObject | null {
  let mutated: unknown = body;
  for (let n = random.between(1, MAX_MUTATIONS); n > 0; n -= 1) mutated = mutateOne(mutated, random);
  return isObject(mutated) && isWithinLimits(mutated) ? mutated : null;
}

/** Repeated parts are shared, so that a small body may be far too large as text: it is counted and not written. */
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

/** Walks down at random, and replaces, repeats or removes what it ends at. */
function mutateOne(value: unknown, random: Random): unknown {
  const keys = typeof value === 'object' && value !== null ? Object.keys(value) : [];
  if (keys.length === 0 || random.chance(0.15)) return random.chance(0.3) ? repeated(value, random) : strange(random);
  const copy: Record<string, unknown> = Array.isArray(value) ? ([...value] as never) : { ...(value as object) };
  const key = random.pick(keys);
  if (random.chance(0.05)) delete copy[key];
  else copy[key] = mutateOne(copy[key], random);
  return copy;
}

/** The same many times over, as a list. */
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
