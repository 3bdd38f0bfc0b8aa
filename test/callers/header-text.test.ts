import { expect, test } from '@jest/globals';
import { headerText } from '../../src/callers/core/header-text.ts';

const asBytes = (text: string): string => Buffer.from(text).toString('latin1');

test.each([
  ['plain', 'plain'],
  [asBytes('Tür 🚪 offen'), 'Tür 🚪 offen'],
  ['T\u00fcr', 'Tür'],
  ['Tür 🚪', 'Tür 🚪'],
  ['=?UTF-8?B?VMO8ciDwn5qq?=', 'Tür 🚪'],
  ['=?utf-8?q?T=C3=BCr_offen?=', 'Tür offen'],
  ['=?iso-8859-1?Q?T=FCr?= is =?UTF-8?B?b3Blbg==?=', 'Tür is open'],
  ['=?UTF-8?B?YQ==?= =?UTF-8?B?Yg==?=', 'ab'],
  ['=?no-such-charset?B?YQ==?=', '=?no-such-charset?B?YQ==?='],
  ['=?UTF-8?X?YQ==?=', '=?UTF-8?X?YQ==?='],
])('reads %j', (value, text) => expect(headerText(value)).toBe(text));
