import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { callAs, CallError } from '../support/call.ts';
import { Stage } from './stage.ts';
import type { Situation } from './situation.ts';

/** The number of concurrent calls. */
const MANY = 12;

let stage: Stage;
let situation: Situation;
beforeAll(async () => {
  stage = await Stage.set();
  situation = await stage.situation(null);
});
afterAll(() => stage.strike());

type Who = keyof Situation['people'] | null;

/** Makes these calls at the same time. Resolves with `yes` or the error code for each, sorted. */
async function race(calls: readonly (readonly [who: Who, name: string, input: object])[]): Promise<string[]> {
  const outcomes = calls.map(([who, name, input]) =>
    callAs(stage.server, who === null ? null : situation.people[who], name, input).then(
      () => 'yes',
      (error: unknown) => {
        if (error instanceof CallError) return error.code;
        throw error;
      },
    ),
  );
  return (await Promise.all(outcomes)).sort();
}

const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
const but = (first: string, rest: string): string[] => [first, ...times(MANY - 1, () => rest)].sort();

test('a sign-in link signs in once', async () => {
  const { link } = await stage.server.operate<{ link: string }>('accounts.invite', {
    user: situation.people.outsider.nick,
  });
  expect(await race(times(MANY, () => [null, 'auth.verify', { link }]))).toEqual(but('yes', 'activation_expired'));
});

test('a telephone that was proven becomes one account', async () => {
  const transaction = await situation.proven();
  const nicks = times(MANY, (i) => [null, 'auth.sign-up', { transaction, nick: `racer-${i}` }] as const);
  expect(await race(nicks)).toEqual(but('yes', 'activation_expired'));
});

test('a nick has one owner, people and bots alike', async () => {
  const transactions = await Promise.all(times(MANY / 3, () => situation.proven()));
  const signUps = transactions.map((transaction) => [null, 'auth.sign-up', { transaction, nick: 'wanted' }] as const);
  const bots = times(MANY / 3, () => ['member', 'bots.create', { nick: 'wanted' }] as const);
  const renamed = (['owner', 'admin', 'bystander', 'stranger'] as const).map(
    (who) => [who, 'profile.update', { nick: 'wanted' }] as const,
  );
  expect(await race([...signUps, ...bots, ...renamed])).toEqual(but('yes', 'nick_taken'));
});

test('an invitation for one lets one in', async () => {
  const { people, group } = await stage.situation(null);
  const invited = { group: group.id, max_uses: 1 };
  const { link } = await stage.server.operate<{ link: string }>('invites.create', invited);
  const strangers = await Promise.all(times(4, () => stage.situation(null)));
  const joining = [people.stranger, people.outsider, ...strangers.map((each) => each.people.stranger)];
  const outcomes = await Promise.all(
    joining.map((person) =>
      callAs(stage.server, person, 'groups.join', { invite: link }).then(
        () => 'yes',
        (error: CallError) => error.code,
      ),
    ),
  );
  expect(outcomes.sort()).toEqual([
    'invalid_invite',
    'invalid_invite',
    'invalid_invite',
    'invalid_invite',
    'invalid_invite',
    'yes',
  ]);
});

test('a group has one owner, however many it is given to at once', async () => {
  const { people, group } = situation;
  const to = ['member', 'admin', 'bystander', 'bot'] as const;
  const outcomes = await race(
    to.map((role) => ['owner', 'groups.transfer', { group: group.id, user: people[role].id }] as const),
  );
  expect(outcomes).toEqual(['forbidden', 'forbidden', 'forbidden', 'yes']);
  const roles = await stage.server.database.query(
    (sql) => sql<{ role: string }[]>`
      select role from membership where conversation_id = ${group.id} and role = 'owner'`,
  );
  expect(roles).toHaveLength(1);
});

test('two people who open a private conversation at once are in the same one', async () => {
  const { people } = situation;
  const opened = await Promise.all(
    times(MANY, (i) => {
      const [from, to] = i % 2 === 0 ? [people.stranger, people.outsider] : [people.outsider, people.stranger];
      return callAs<{ id: number }>(stage.server, from, 'private.open', { user: to.id });
    }),
  );
  expect(new Set(opened.map(({ id }) => id)).size).toBe(1);
});

test('a client id posts once', async () => {
  const input = { conversation: situation.group.id, text: 'once', client_id: 'once' };
  const sent = await Promise.all(
    times(MANY, () =>
      callAs<{ seq: number; repeated: boolean }>(stage.server, situation.people.member, 'messages.send', input),
    ),
  );
  expect(new Set(sent.map(({ seq }) => seq)).size).toBe(1);
  expect(sent.filter(({ repeated }) => !repeated)).toHaveLength(1);
});

test('a message is deleted and edited at once: what is deleted stays so', async () => {
  const seq = await situation.post('member');
  const place = { conversation: situation.group.id, seq };
  await race([
    ...times(MANY / 2, (i) => ['member', 'messages.edit', { ...place, text: `edit ${i}` }] as const),
    ['admin', 'messages.delete', place],
    ...times(MANY / 2, (i) => ['member', 'messages.edit', { ...place, text: `late ${i}` }] as const),
  ]);
  const { messages } = await callAs(stage.server, situation.people.member, 'messages.history', {
    conversation: situation.group.id,
    after: seq - 1,
    limit: 1,
  });
  expect(messages[0]).toMatchObject({ seq, text: '', deleted: true });
});

test('somebody who is removed and added at once is a member or none, and the notices say which', async () => {
  const { people, group } = situation;
  const user = { group: group.id, user: people.bystander.id };
  const calls = times(
    MANY,
    (i) => ['administrator', i % 2 === 0 ? 'groups.remove-member' : 'groups.add-member', user] as const,
  );
  await race(calls);
  const { members } = await callAs(stage.server, people.administrator, 'groups.members', { group: group.id });
  const isIn = (members as { id: number }[]).some(({ id }) => id === people.bystander.id);
  const [last] = await stage.server.database.query(
    (sql) => sql<{ kind: string }[]>`
      select kind from notice where conversation_id = ${group.id} and kind in ('joined', 'removed')
        and (details->>'account')::bigint = ${people.bystander.id}
      order by rev desc limit 1`,
  );
  expect(last?.kind).toBe(isIn ? 'joined' : 'removed');
});
