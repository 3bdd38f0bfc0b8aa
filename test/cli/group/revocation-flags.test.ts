import { expect, test } from '@jest/globals';
import { revocationInput, revokedAccessLines } from '../../../src/cli/group/revocation-flags.ts';
import type { RevocationReport } from '../../../src/operations/groups/access-revocation.ts';

test('what ended with a membership is printed, and what is left to do with the command for it', () => {
  const departure: RevocationReport = {
    bots: ['spy', 'eve'],
    invites_ended: 1,
    invites_seen: [4, 9],
    hooks: [3],
    token: 'seen',
  };
  expect(revokedAccessLines(7, 'bob', departure)).toEqual([
    'The same holds for the bots of bob: spy, eve.',
    '1 invitation is revoked.',
    'bob could see the integration token, which still works: klatch group token rotate 7 replaces it.',
    'bob could see the links of these invitations, which are still open: 4, 9.',
    'bob may have registered one of these reverse webhooks: 3 (klatch group info 7).',
  ]);
});

test('a replaced token is said with the command that prints the new one, and nothing is said of nothing', () => {
  const nothing: Omit<RevocationReport, 'token'> = { bots: [], invites_ended: 0, invites_seen: [], hooks: [] };
  expect(revokedAccessLines(7, 'bob', { ...nothing, invites_ended: 2, token: 'rotated' })).toEqual([
    '2 invitations are revoked.',
    'The integration token is replaced: klatch group token show 7 prints the new one.',
  ]);
  expect(revokedAccessLines(7, 'bob', { ...nothing, token: 'unseen' })).toEqual([]);
  expect(revokedAccessLines(7, 'bob', {})).toEqual([]);
});

test('the options become the input of the operations', () => {
  expect(revocationInput({})).toEqual({});
  expect(revocationInput({ rotateToken: true, revokeInvites: true })).toEqual({
    rotate_token: true,
    revoke_invites: true,
  });
});
