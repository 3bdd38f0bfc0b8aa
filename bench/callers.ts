import { mutatedPayloads, readPayloads, type Payload } from '../test/callers/mutated-payloads.ts';
import { requestOf } from '../test/callers/fixtures.ts';
import type { CallerRequest } from '../src/callers/core/caller-format.ts';
import { messageCardsJson } from '../src/callers/core/message-cards.ts';
import { isIgnored } from '../src/callers/core/message-form.ts';
import { renderText } from '../src/callers/core/render-text.ts';
import { detectFormat, formats } from '../src/callers/formats.ts';
import { percentile, report, round } from './support/report.ts';

const PAYLOADS = 100_000;
const SEED = 1;
/** The target, in ms, of the 99th percentile over all unchanged payloads: the time to read and render one. */
const P99_TARGET_MS = 1;
/** The target of every single payload, even a mutated one: one request may hold the event loop for this time. */
const WORST_TARGET_MS = 25;
/** If reading a payload takes longer than this by the clock, the benchmark measures it again by CPU time. */
const SLOW_MS = 0.5;
/**
 * A measurement repeats the reading for this much CPU time, since Linux counts the CPU time of a thread in ticks of up
 * to 4 ms.
 */
const CPU_ROUND_MS = 40;
const MAX_READINGS = 1_000;

interface Measured {
  readonly format: string;
  readonly ms: number;
}

/**
 * Measures how long reading and rendering of payloads takes, without HTTP: of payloads as programs send them, and
 * mutated ones.
 */
export async function benchCallers(): Promise<boolean> {
  const payloads = readPayloads();
  for (let n = 0; n < 20; n += 1) for (const { format, fixture } of payloads) read(format, requestOf(fixture));
  const real = payloads.map((payload) => ({ format: payload.format.name, ms: cpuMs(payload) }));
  const mutated = Array.from(mutatedPayloads(payloads, PAYLOADS, SEED), measured);
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

function read(format: Payload['format'], request: CallerRequest): void {
  detectFormat(request);
  const result = format.read(request);
  if (isIgnored(result)) return;
  renderText(result);
  messageCardsJson(result);
}

/**
 * Measures one reading by the clock. If it takes long, this thread may have waited for the processor, so its CPU time
 * counts.
 */
function measured(payload: Payload): Measured {
  const request = requestOf(payload.fixture);
  const startedAt = performance.now();
  read(payload.format, request);
  const ms = performance.now() - startedAt;
  return { format: payload.format.name, ms: ms > SLOW_MS ? cpuMs(payload) : ms };
}

/**
 * The CPU time of this thread for one reading, in ms. It is the mean of so many readings that a single tick does not
 * matter.
 */
function cpuMs({ format, fixture }: Payload): number {
  const request = requestOf(fixture);
  const before = process.threadCpuUsage();
  for (let count = 1; ; count += 1) {
    read(format, request);
    const { user, system } = process.threadCpuUsage(before);
    const spentMs = (user + system) / 1_000;
    if (spentMs >= CPU_ROUND_MS || count === MAX_READINGS) return spentMs / count;
  }
}

function p99(from: readonly Measured[]): number {
  const ms = from.map((each) => each.ms);
  return round(percentile(ms, 0.99), 3);
}

function worst(from: readonly Measured[]): number {
  const ms = from.reduce((most, each) => Math.max(most, each.ms), 0);
  return round(ms, 2);
}
