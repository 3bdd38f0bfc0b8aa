import { describe, expect, test } from '@jest/globals';
import { UnresponsiveHostBackoff } from '../../src/push/host-backoff.ts';

describe('a host that does not answer', () => {
  test('rests after five failures in a row, longer each time, and ten minutes at most', () => {
    let nowMs = 0;
    const rests = new UnresponsiveHostBackoff(() => nowMs);
    const fail = (): number => {
      nowMs += 1;
      rests.recordRequest('https://a.example', false, nowMs);
      return rests.remainingBackoffMs('https://a.example');
    };
    expect([fail(), fail(), fail(), fail()]).toEqual([0, 0, 0, 0]);
    expect([fail(), fail(), fail()]).toEqual([10_000, 20_000, 40_000]);
    for (let n = 0; n < 20; n += 1) fail();
    expect(rests.remainingBackoffMs('https://a.example')).toBe(600_000);
    expect(rests.remainingBackoffMs('https://b.example')).toBe(0);
    nowMs += 600_000;
    expect(rests.remainingBackoffMs('https://a.example')).toBe(0);
  });

  test('rests no longer for what was under way when it began to rest', () => {
    let nowMs = 1_000;
    const rests = new UnresponsiveHostBackoff(() => nowMs);
    const left = (): number => rests.remainingBackoffMs('https://a.example');
    // The loop stands for 32 concurrent requests to one host.
    for (let n = 0; n < 32; n += 1) rests.recordRequest('https://a.example', false, 900);
    expect(left()).toBe(10_000);
    nowMs += 10_000;
    for (let n = 0; n < 32; n += 1) rests.recordRequest('https://a.example', false, nowMs - 1);
    expect(left()).toBe(20_000);
  });

  test('is as good as any other once it answers', () => {
    const rests = new UnresponsiveHostBackoff(() => 0);
    for (let n = 1; n <= 9; n += 1) rests.recordRequest('https://a.example', false, n);
    rests.recordRequest('https://a.example', true, 0);
    expect(rests.remainingBackoffMs('https://a.example')).toBe(0);
    rests.recordRequest('https://a.example', false, 10);
    expect(rests.remainingBackoffMs('https://a.example')).toBe(0);
  });
});
