import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { scopes } from '../../src/model/scopes.ts';
import { callAs } from '../support/call.ts';
import { eventually } from '../support/eventually.ts';
import { signIn } from '../support/people.ts';
import { Receiver } from '../support/receiver.ts';
import { postJson, TestServer } from '../support/server.ts';
import { createGroup, createPeople, type People } from './fixture.ts';

const DOCUMENT = readFileSync(new URL('../../docs/groups.md', import.meta.url), 'utf8');
const HEADING = '## What a removed admin can still do';

let server: TestServer;
let people: People;
let receiver: Receiver;
beforeAll(async () => {
  receiver = await Receiver.start();
  server = await TestServer.start({ delivery: { allow: ['loopback'] } });
  people = await createPeople(server, 'alice', 'bob', 'friend');
});
afterAll(async () => {
  await server.stop();
  await receiver.stop();
});

const as = (nick: string, name: string, input: object = {}) => callAs(server, people[nick]!, name, input);

/** Creates a group with Bob as an admin, who has stored everything that an admin can see. */
async function situation(round: number) {
  const group = await createGroup(server, people['alice']!, { members: { bob: 'admin' } });
  await as('alice', 'messages.send', { conversation: group, text: 'a secret' });
  const { id: botId } = await as('bob', 'bots.create', { nick: `spy-${round}` });
  await as('bob', 'groups.add-member', { group, user: `spy-${round}` });
  const bot = await signIn(server, botId, scopes);
  const { token } = await as('bob', 'groups.show-token', { group });
  const { link: ownLink } = await as('bob', 'invites.create', { group });
  const { link: otherLink } = await as('alice', 'invites.create', { group });
  const url = receiver.url(`/${round}`);
  const hook = await as('bob', 'hooks.create', { group, url });
  return { group, bot, token, ownLink, otherLink, hook: hook.id as number, path: `/${round}`, url };
}
type Situation = Awaited<ReturnType<typeof situation>>;

const webhook = ({ token }: Situation) => `${server.url}/v1/webhooks/${token}`;
const status = async (answer: Promise<{ status: number }>): Promise<string> => {
  const { status: code } = await answer;
  return code < 300 ? 'yes' : String(code);
};
const outcome = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'yes',
    (error: { code: string }) => error.code,
  );

/** Bob's attempts, by their names in the table of the document. */
const ATTEMPTS: Readonly<Record<string, (at: Situation) => Promise<string>>> = {
  'read messages': ({ group }) => outcome(as('bob', 'messages.history', { conversation: group })),
  'sync changes': ({ group }) => outcome(as('bob', 'conversations.sync', { conversation: group, after_rev: 0 })),
  'write a message': ({ group }) => outcome(as('bob', 'messages.send', { conversation: group, text: 'x' })),
  'see the group and its members': ({ group }) => outcome(as('bob', 'groups.members', { group })),
  'see the integration token': ({ group }) => outcome(as('bob', 'groups.show-token', { group })),
  'see the invitations': ({ group }) => outcome(as('bob', 'invites.list', { group })),
  'add an account or a bot': ({ group }) => outcome(as('bob', 'groups.add-member', { group, user: 'friend' })),
  'read messages as a bot of his': ({ group, bot }) =>
    outcome(callAs(server, bot, 'messages.history', { conversation: group })),
  'join by the number of the group': ({ group }) => outcome(as('bob', 'groups.join', { group })),
  'join by a link that he made': ({ ownLink }) => outcome(as('bob', 'groups.join', { invite: ownLink })),
  "join by another's link that he saw": ({ otherLink }) => outcome(as('bob', 'groups.join', { invite: otherLink })),
  "join by another's link as a bot of his": ({ otherLink, bot }) =>
    outcome(callAs(server, bot, 'groups.join', { invite: otherLink })),
  'let a friend in by a link that he made': ({ ownLink }) =>
    outcome(as('friend', 'invites.preview', { invite: ownLink })),
  "let a friend in by another's link that he saw": ({ otherLink }) =>
    outcome(as('friend', 'invites.preview', { invite: otherLink })),
  'post with the token that he saw': (at) => status(postJson(webhook(at), { text: 'x' })),
  'register a reverse webhook with that token': (at) =>
    status(postJson(`${webhook(at)}/reverse`, { url: `${at.url}-more` })),
  'change his reverse webhook': ({ hook }) => outcome(as('bob', 'hooks.update', { hook, paused: false })),
  'receive messages at his reverse webhook': async ({ group, path }) => {
    const before = receiver.arrivals.length;
    const { id } = await as('alice', 'messages.send', { conversation: group, text: 'new' });
    const settled = await server.database.query(
      (sql) => sql`select from reverse_hook where conversation_id = ${group} and removed_at is null`,
    );
    if (settled.length === 0) return 'no';
    await eventually(
      () => Promise.resolve(receiver.arrivals.slice(before).filter((each) => each.path === path)),
      (arrivals) => arrivals.some(({ raw }) => raw.includes(id)),
    );
    return 'yes';
  },
};

/** The columns of the table, each with what happens to Bob before his attempts. */
const COLUMNS: Readonly<Record<string, (at: Situation) => Promise<unknown>>> = {
  'as an admin': () => Promise.resolve(),
  removed: ({ group }) => as('alice', 'groups.remove-member', { group, user: 'bob' }),
  'removed with all that the answer offers': async ({ group }) => {
    const more = { rotate_token: true, revoke_invites: true };
    const { hooks } = await as('alice', 'groups.remove-member', { group, user: 'bob', ...more });
    for (const hook of hooks) await as('alice', 'hooks.remove', { hook });
  },
};

test('the table of what a removed admin can still do is what the document says', async () => {
  const columns: string[][] = [];
  for (const [round, act] of Object.values(COLUMNS).entries()) {
    const at = await situation(round);
    await act(at);
    const cells: string[] = [];
    for (const attempt of Object.values(ATTEMPTS)) cells.push(await attempt(at));
    columns.push(cells);
  }
  const measured = Object.keys(ATTEMPTS).map((attempt, row) => [attempt, ...columns.map((cells) => cells[row]!)]);
  expect(documented()).toEqual([['Attempt', ...Object.keys(COLUMNS)], ...measured]);
  expect(columns[2]).not.toContain('yes');
});

/** The cells of the document's table below the heading, without their backticks. */
function documented(): string[][] {
  const section = DOCUMENT.split(`${HEADING}\n`)[1]?.split('\n## ')[0] ?? '';
  const lines = section.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| --'));
  return lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim().replace(/^`(.*)`$/, '$1')),
  );
}
