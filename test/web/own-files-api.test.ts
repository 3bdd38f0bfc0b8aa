import { expect, test } from '@jest/globals';
import { messagePlaceOf } from '../../web/core/people/own-files-api.ts';

test.each([
  ['7:42', { conversation: 7, seq: 42 }],
  ['7:42.29000000', { conversation: 7, seq: 42 }],
  ['7:42.', null],
  ['7', null],
  ['0:1', null],
])('the message %j is at %j', (id, place) => {
  expect(messagePlaceOf(id)).toEqual(place);
});
