import { mutatedPayloads, readPayloads, type Payload } from '../test/callers/mutated-payloads.ts';
import { ServerProcess } from '../test/support/server-process.ts';
import { residentMiB } from './support/cpu.ts';
import { report, round } from './support/report.ts';

const PAYLOADS = Number(process.env['PAYLOADS'] || 100_000);
const SEED = 2;
const CONNECTIONS = 16;
/** The number of sending addresses, as in a large installation. The parse budget of the server bounds each of them. */
const SOURCES = 2_000;
const GROUPS = 50;
/**
 * After this share of the posts, caches are full and V8 has compiled the hot code. The peak of memory up to here is
 * compared with the later one.
 */
const WARM_SHARE = 0.3;
const MAX_GROWTH_MIB = 64;
const SETTINGS = `
  limits { token-rate = 100000, token-burst = 1000000 }
  http.trusted-proxies = ["127.0.0.1"]
  log.level = error`;

/**
 * Posts mutated payloads of all formats to a real server. Half of them go to the webhook of a group, and half to the
 * webhook with the suffix of their format.
 */
export async function benchMutatedPosts(): Promise<boolean> {
  const server = await ServerProcess.create(SETTINGS);
  try {
    await server.start();
    return await postAll(server);
  } finally {
    await server.discard();
  }
}

async function postAll(server: ServerProcess): Promise<boolean> {
  const webhooks: string[] = [];
  for (let n = 0; n < GROUPS; n += 1) webhooks.push((await server.createGroup(`Group ${n}`)).webhook);
  const payloads = mutatedPayloads(readPayloads(), PAYLOADS, SEED);
  const countByStatus = new Map<string, number>();
  const residents: number[] = [];
  let posted = 0;
  const postInTurn = async (): Promise<void> => {
    for (const payload of payloads) {
      const n = (posted += 1);
      const webhook = webhooks[n % GROUPS]!;
      const status = await post(n % 2 === 0 ? webhook : `${webhook}/${payload.format.name}`, payload, n);
      countByStatus.set(status, (countByStatus.get(status) ?? 0) + 1);
      if (n % Math.ceil(PAYLOADS / 100) === 0) residents.push(residentMiB(server.pid));
    }
  };
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: CONNECTIONS }, postInTurn));
  const seconds = (performance.now() - startedAt) / 1_000;
  const warm = residents.slice(0, Math.ceil(residents.length * WARM_SHARE));
  const growthMiB = round(Math.max(...residents) - Math.max(...warm), 1);
  const failures = [...countByStatus].filter(([status]) => !/^[24]/.test(status));
  const failed = failures.reduce((sum, [, count]) => sum + count, 0);
  const rows = [...countByStatus]
    .toSorted(([a], [b]) => Number(a) - Number(b))
    .map(([status, count]) => ({ status, count }));
  report(`mutated: ${posted} mutated payloads over HTTP`, rows, {
    bench: 'mutated',
    ratio: round(growthMiB / MAX_GROWTH_MIB, 3),
    baseline: `${MAX_GROWTH_MIB} MiB more than the peak of the first ${WARM_SHARE * 100} %; less is better`,
    rate: round(posted / seconds),
    target: 1,
    failed,
    'peak memory, MiB': round(Math.max(...residents), 1),
    'growth, MiB': growthMiB,
  });
  return failed === 0 && growthMiB <= MAX_GROWTH_MIB && server.running;
}

/** The status of the answer, or "none" if no answer came. */
async function post(url: string, { fixture }: Payload, n: number): Promise<string> {
  const query = fixture.query === undefined ? '' : `?${fixture.query}`;
  const source = `10.0.${(n % SOURCES) >> 8}.${n & 255}`;
  try {
    const answer = await fetch(url + query, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...fixture.headers, 'x-forwarded-for': source },
      body: JSON.stringify(fixture.body),
    });
    await answer.arrayBuffer();
    return String(answer.status);
  } catch {
    return 'none';
  }
}
