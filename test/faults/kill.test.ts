import { expect, test } from '@jest/globals';
import { runKills } from './kill-load.ts';

test('loses nothing, posts nothing twice and keeps the order over kills with -9', async () => {
  const report = await runKills({ kills: 4, messages: 800, groups: 4, hooksPerGroup: 3, clients: 8 });
  expect(report).toMatchObject({ lost: 0, postedTwice: 0, outOfOrder: 0 });
  // A lane settles one delivery before it sends the next, so a kill can repeat one for each hook.
  expect(report.maxRepeatsOfAHook).toBeLessThanOrEqual(report.kills);
}, 180_000);
