import { expect, test } from '@jest/globals';
import { inviteTokenIn } from '../../web/core/people/directory-api.ts';

const TOKEN = 'Zk3_'.repeat(10) + 'end';

test.each([
  [`https://chat.example.org/v1/groups/invites/${TOKEN}`, TOKEN],
  [` https://chat.example.org/chat/join#${TOKEN} `, TOKEN],
  [`https://chat.example.org/v1/groups/invites/${TOKEN}/`, TOKEN],
  [TOKEN, TOKEN],
  [`https://chat.example.org/v1/sign-in#kll_${TOKEN}`, null],
  [`https://chat.example.org/${TOKEN}x`, null],
  ['https://chat.example.org', null],
])('the token of the invitation %j is %j', (text, token) => {
  expect(inviteTokenIn(text)).toBe(token);
});
