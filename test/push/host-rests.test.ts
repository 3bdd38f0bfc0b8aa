import { describe, expect, test } from '@jest/globals';
import { HostRests } from '../../src/push/host-rests.ts';

describe('a host that does not answer', () => {
  test('rests after five failures in a row, longer each time, and ten minutes at most', () => {
    let nowMs = 0;
    const rests = new HostRests(() => nowMs);
    const fail = (): number => {
      rests.note('https://a.example', false);
      return rests.left('https://a.example');
    };
    expect([fail(), fail(), fail(), fail()]).toEqual([0, 0, 0, 0]);
    expect([fail(), fail(), fail()]).toEqual([10_000, 20_000, 40_000]);
    for (let n = 0; n < 20; n += 1) fail();
    expect(rests.left('https://a.example')).toBe(600_000);
    expect(rests.left('https://b.example')).toBe(0);
    nowMs += 600_000;
    expect(rests.left('https://a.example')).toBe(0);
  });

  test('is as good as any other once it answers', () => {
    const rests = new HostRests(() => 0);
    for (let n = 0; n < 9; n += 1) rests.note('https://a.example', false);
    rests.note('https://a.example', true);
    expect(rests.left('https://a.example')).toBe(0);
    rests.note('https://a.example', false);
    expect(rests.left('https://a.example')).toBe(0);
  });
});
