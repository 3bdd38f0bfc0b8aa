import { expect, test } from '@jest/globals';
import { parseAppearance } from '../../web/core/appearance.ts';

const USUAL = { theme: 'system', density: 'comfortable', motion: 'system' };

test.each([
  [null, {}],
  ['', {}],
  ['{', {}],
  ['null', {}],
  ['[]', {}],
  ['"dark"', {}],
  ['{"theme":"dark"}', { theme: 'dark' }],
  ['{"theme":"dark","density":"compact","motion":"reduced"}', { theme: 'dark', density: 'compact', motion: 'reduced' }],
  ['{"theme":"blue","density":7,"motion":"reduced","__proto__":{"density":"compact"}}', { motion: 'reduced' }],
  [`{"theme":"dark","more":"${'x'.repeat(200)}"}`, {}],
])('an appearance that was kept as %j is read as %j beside the usual', (kept, chosen) => {
  expect(parseAppearance(kept)).toEqual({ ...USUAL, ...chosen });
});
