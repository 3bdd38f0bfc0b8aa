import { beforeEach, describe, expect, test } from '@jest/globals';
import { DnsResolver, DnsLookupError, type DnsResolverOptions } from '../../src/outbound/dns-resolver.ts';

interface Question {
  readonly host: string;
  readonly answer: (...addresses: string[]) => void;
  readonly fail: (code: string) => void;
}

let questions: Question[] = [];
let nowMs = 0;

function resolve(host: string): Promise<{ address: string; family: number }[]> {
  return new Promise((resolve, reject) => {
    questions.push({
      host,
      answer: (...addresses) =>
        resolve(addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))),
      fail: (code) => reject(Object.assign(new Error(code), { code })),
    });
  });
}

function create(options: Partial<DnsResolverOptions> = {}): DnsResolver {
  return new DnsResolver({
    timeoutMs: 5_000,
    successCacheMs: 30_000,
    failureCacheMs: 5_000,
    maxConcurrentLookups: 2,
    resolve,
    now: () => nowMs,
    ...options,
  });
}

/** Waits until the callers have got the answers of the resolver. */
async function settled(...lookups: Promise<unknown>[]): Promise<void> {
  await Promise.allSettled(lookups);
}

describe('DnsResolver', () => {
  beforeEach(() => {
    questions = [];
    nowMs = 0;
  });

  test('asks once for all who ask for the same name at once, whatever its case', async () => {
    const lookup = create();
    const answers = [lookup.lookup('a.example'), lookup.lookup('A.example')];
    questions[0]?.answer('1.2.3.4', '2606::1');
    for (const answer of answers) {
      await expect(answer).resolves.toEqual([
        { address: '1.2.3.4', family: 4 },
        { address: '2606::1', family: 6 },
      ]);
    }
    expect(questions).toHaveLength(1);
  });

  test('remembers addresses for the cache time, not longer', async () => {
    const lookup = create();
    const first = lookup.lookup('a.example');
    questions[0]?.answer('1.2.3.4');
    await first;
    nowMs = 29_999;
    await lookup.lookup('a.example');
    expect(questions).toHaveLength(1);
    nowMs = 30_000;
    const second = lookup.lookup('a.example');
    questions[1]?.answer('5.6.7.8');
    await expect(second).resolves.toEqual([{ address: '5.6.7.8', family: 4 }]);
  });

  test('remembers failures for their own time', async () => {
    const lookup = create();
    const first = lookup.lookup('a.example');
    questions[0]?.fail('ENOTFOUND');
    await expect(first).rejects.toMatchObject({ name: 'DnsLookupError', code: 'ENOTFOUND' });
    nowMs = 4_999;
    await expect(lookup.lookup('a.example')).rejects.toMatchObject({ code: 'ENOTFOUND' });
    expect(questions).toHaveLength(1);
    nowMs = 5_000;
    const second = lookup.lookup('a.example');
    questions[1]?.answer('1.2.3.4');
    await expect(second).resolves.toHaveLength(1);
  });

  test('no address at all is a failure', async () => {
    const lookup = create();
    const answer = lookup.lookup('a.example');
    questions[0]?.answer();
    await expect(answer).rejects.toMatchObject({ code: 'ENODATA' });
  });

  test('a resolver that throws, or fails without a code, is a failure too', async () => {
    const lookup = create({
      resolve: () => {
        throw new Error('broken');
      },
    });
    await expect(lookup.lookup('a.example')).rejects.toMatchObject({ code: 'EAI_FAIL' });
  });

  test('runs at most `maxConcurrentLookups` look-ups, the others wait in order', async () => {
    const lookup = create();
    const a = lookup.lookup('a.example');
    const b = lookup.lookup('b.example');
    const c = lookup.lookup('c.example');
    const d = lookup.lookup('d.example');
    expect(questions.map(({ host }) => host)).toEqual(['a.example', 'b.example']);
    questions[1]?.answer('1.2.3.4');
    await b;
    await settled();
    expect(questions.map(({ host }) => host)).toEqual(['a.example', 'b.example', 'c.example']);
    for (const question of questions) question.answer('1.2.3.4');
    await settled(a, c);
    questions[3]?.answer('1.2.3.4');
    await expect(d).resolves.toHaveLength(1);
  });

  test('keeps slots for names that were found quickly before, beside those that nobody knows yet', async () => {
    const lookup = create({ maxConcurrentLookups: 4 });
    const first = lookup.lookup('proven.example');
    questions[0]?.answer('1.2.3.4');
    await first;
    nowMs = 30_000;
    const others = ['a', 'b', 'c', 'd'].map((name) => lookup.lookup(`${name}.example`));
    const again = lookup.lookup('proven.example');
    const asked = (): string[] => questions.slice(1).map(({ host }) => host);
    expect(asked()).toEqual(['a.example', 'b.example', 'c.example', 'proven.example']);
    questions.at(-1)!.answer('5.6.7.8');
    await expect(again).resolves.toEqual([{ address: '5.6.7.8', family: 4 }]);
    expect(asked()).toHaveLength(4);
    for (let n = 1; n < 6; n += 1) {
      questions[n]?.answer('1.2.3.4');
      await settled();
    }
    await expect(Promise.all(others)).resolves.toHaveLength(4);
  });

  test('gives names whose last look-up was slow half of the slots, until one is quick', async () => {
    const lookup = create({ maxConcurrentLookups: 4 });
    const slow = ['a.example', 'b.example', 'c.example'];
    const failed = slow.map((host) => lookup.lookup(host));
    nowMs = 1_001;
    for (const question of questions) question.fail('EAI_AGAIN');
    await settled(...failed);
    nowMs = 10_000;
    questions = [];
    const again = slow.map((host) => lookup.lookup(host));
    const fresh = lookup.lookup('new.example');
    expect(questions.map(({ host }) => host)).toEqual(['a.example', 'b.example', 'new.example']);
    for (const question of questions) question.answer('1.2.3.4');
    await settled(again[0]!, again[1]!, fresh);
    // The first two names are fast now. The third had to wait for one of them, and is next.
    expect(questions.at(-1)!.host).toBe('c.example');
    questions.at(-1)!.answer('1.2.3.4');
    await again[2];
    nowMs = 50_000;
    questions = [];
    const quick = slow.map((host) => lookup.lookup(host));
    expect(questions).toHaveLength(3);
    for (const question of questions) question.answer('1.2.3.4');
    await settled(...quick);
  });

  test('gives up in time when the resolver never answers, and keeps its slot taken', async () => {
    const lookup = create({ timeoutMs: 20, maxConcurrentLookups: 1 });
    const stuck = lookup.lookup('stuck.example');
    const queued = lookup.lookup('queued.example');
    await expect(stuck).rejects.toMatchObject({ code: 'ETIMEDOUT' });
    await expect(queued).rejects.toMatchObject({ code: 'ETIMEDOUT' });
    expect(lookup.counts.callersTimedOutOrRejected).toBe(2);
    const next = lookup.lookup('next.example');
    expect(questions.map(({ host }) => host)).toEqual(['stuck.example']);
    questions[0]?.answer('1.2.3.4');
    await settled();
    // The slot is free again. The resolver does not query the name that nobody waits for any more.
    expect(questions.map(({ host }) => host)).toEqual(['stuck.example', 'next.example']);
    questions[1]?.answer('5.6.7.8');
    await expect(next).resolves.toEqual([{ address: '5.6.7.8', family: 4 }]);
  });

  test('a look-up that timed out fails at once until it is answered, then has its late answer', async () => {
    const lookup = create({ timeoutMs: 20 });
    await expect(lookup.lookup('a.example')).rejects.toMatchObject({ code: 'ETIMEDOUT' });
    const nextTurn = new Promise((resolve) => setImmediate(resolve, 'still waiting'));
    const again = lookup.lookup('a.example').catch((error: unknown) => error);
    expect(await Promise.race([again, nextTurn])).toBeInstanceOf(DnsLookupError);
    expect(questions).toHaveLength(1);
    questions[0]?.answer('1.2.3.4');
    await settled();
    await expect(lookup.lookup('a.example')).resolves.toHaveLength(1);
    expect(questions).toHaveLength(1);
  });

  test('refuses at once when too many wait', async () => {
    const lookup = create({ maxCachedAndMaxWaiting: 2 });
    const waiting = [lookup.lookup('a.example'), lookup.lookup('b.example')];
    await expect(lookup.lookup('c.example')).rejects.toMatchObject({ code: 'EBUSY' });
    expect(lookup.counts.callersTimedOutOrRejected).toBe(1);
    for (const question of questions) question.answer('1.2.3.4');
    await settled(...waiting);
    const next = lookup.lookup('c.example');
    questions[2]?.answer('1.2.3.4');
    await expect(next).resolves.toHaveLength(1);
  });

  test('forgets the oldest name when the cache is full', async () => {
    const lookup = create({ maxCachedAndMaxWaiting: 2 });
    for (const [index, host] of ['a.example', 'b.example', 'c.example'].entries()) {
      const answer = lookup.lookup(host);
      questions[index]?.answer('1.2.3.4');
      await answer;
    }
    await lookup.lookup('b.example');
    await lookup.lookup('c.example');
    expect(questions).toHaveLength(3);
    const again = lookup.lookup('a.example');
    expect(questions).toHaveLength(4);
    questions[3]?.answer('1.2.3.4');
    await again;
  });

  test('asks the system by default', async () => {
    const lookup = new DnsResolver({ timeoutMs: 5_000, successCacheMs: 1, failureCacheMs: 1, maxConcurrentLookups: 1 });
    const addresses = (await lookup.lookup('localhost')).map(({ address }) => address);
    expect(addresses.every((address) => ['127.0.0.1', '::1'].includes(address))).toBe(true);
  });
});
