import { randomBytes, randomInt } from 'node:crypto';
import type { AccountId, ConversationId, SessionOrTokenId } from '../../src/model/ids.ts';
import { scopes, type Scope } from '../../src/model/scopes.ts';
import { hashSessionToken, newSessionToken } from '../../src/operations/core/session-cache.ts';
import { finishUpload, insertUpload } from '../../src/storage/files/files.ts';
import { insertSessionOrToken } from '../../src/storage/accounts/sessions.ts';
import type { Sql, Transaction } from '../../src/storage/db/connection.ts';
import { callAs } from '../support/call.ts';
import type { TestPerson } from '../support/people.ts';
import { postJson, type TestGroup, type TestServer } from '../support/server.ts';
import type { Caller } from './read-matrix.ts';

/** The roles of people in a situation: the callers, and the objects of operations. */
type Role = Exclude<Caller, 'anonymous'> | 'bystander' | 'outsider';

const ROLES: readonly Role[] = [
  'stranger',
  'former',
  'member',
  'admin',
  'owner',
  'administrator',
  'bot',
  'unscoped',
  'bystander',
  'outsider',
];

/**
 * People of every kind, made for one situation. They are around a group that has messages and a reverse webhook, and a
 * private conversation of its owner and a member. `bystander` is another member, `outsider` another stranger.
 */
export class Situation {
  readonly server: TestServer;
  readonly people: Readonly<Record<Role, TestPerson>>;
  readonly group: TestGroup;
  /** The private conversation of the owner and the member. */
  readonly private: number;
  /** A reverse webhook of the group, whose target accepts everything. */
  readonly hook: number;

  private constructor(server: TestServer, made: Pick<Situation, 'people' | 'group' | 'private' | 'hook'>) {
    this.server = server;
    this.people = made.people;
    this.group = made.group;
    this.private = made.private;
    this.hook = made.hook;
  }

  /**
   * Makes a situation in which the bot has `scope`, and the unscoped bot lacks it. Null: the bot has all scopes, and
   * the unscoped bot none.
   */
  static async make(server: TestServer, scope: Scope | null, target: string): Promise<Situation> {
    const group = await server.createGroup('Situation');
    const { body } = await postJson(`${group.webhook}/reverse`, { url: target });
    await postJson(group.webhook, { text: 'of the integration' });
    const made = await server.database.query((sql) =>
      sql.begin(async (tx) => {
        const people = await makePeople(tx, scope);
        await makeMembers(tx, people, group.id as ConversationId);
        return { people, private: await makePrivate(tx, people) };
      }),
    );
    const situation = new Situation(server, { ...made, group, hook: (body as { id: number }).id });
    const { former } = situation.people;
    await server.operate('messages.send', { conversation: group.id, as: former.nick, text: 'of a former member' });
    await server.operate('groups.remove-member', { group: group.id, user: former.nick });
    return situation;
  }

  /** The account of a kind of caller; null for `anonymous`. */
  caller(kind: Caller): TestPerson | null {
    return kind === 'anonymous' ? null : this.people[kind];
  }

  /** Posts into the group as this person; resolves to the seq. */
  async post(as: Role, text = 'x'): Promise<number> {
    const input = { conversation: this.group.id, as: this.people[as].nick, text };
    return (await this.server.operate<{ seq: number }>('messages.send', input)).seq;
  }

  /**
   * The id of another session (of a bot: another token) of the caller. For an anonymous caller, it belongs to another
   * account.
   */
  async anotherSession(kind: Caller): Promise<number> {
    const { id } = kind === 'anonymous' ? this.people.bystander : this.people[kind];
    const isBot = kind === 'bot' || kind === 'unscoped';
    const opened = await this.server.database.query((sql) => openSession(sql, id as AccountId, isBot ? [] : null));
    return opened.session;
  }

  /**
   * The id of a device of the caller. For bots and anonymous callers, which have none, it belongs to another account.
   */
  async device(kind: Caller | 'bystander'): Promise<number> {
    const isPerson = kind !== 'anonymous' && kind !== 'bot' && kind !== 'unscoped';
    const owner = this.people[isPerson ? kind : 'bystander'];
    return (await callAs<{ id: number }>(this.server, owner, 'devices.register', newDevice())).id;
  }

  /** Makes a preparing call as the caller, if the caller is a person; does nothing for others. */
  async asPerson(kind: Caller, name: string, input: object): Promise<void> {
    if (kind !== 'anonymous' && kind !== 'bot' && kind !== 'unscoped') {
      await callAs(this.server, this.people[kind], name, input);
    }
  }

  /** The sign-up transaction of a telephone number that is proven and that has no account yet. */
  async proven(): Promise<string> {
    const phone = randomPhone();
    const { transaction } = await callAs<{ transaction: string }>(this.server, null, 'auth.start', { address: phone });
    await this.server.database.query(
      (sql) => sql`update activation set verified_at = now() where kind = 'phone' and address = ${phone}`,
    );
    return transaction;
  }

  /** Creates an invitation into the group, or into another one. */
  invite(group = this.group.id): Promise<{ id: number; link: string }> {
    return this.server.operate('invites.create', { group });
  }

  /** Marks the hook as removed, as if its target had answered 410. */
  async removeHook(): Promise<void> {
    await this.server.database.query(
      (sql) => sql`update reverse_hook set removed_at = now(), removed_by = 'target' where id = ${this.hook}`,
    );
  }

  /**
   * Creates a complete file of a person, and attaches it to a message if a conversation is given. Resolves to its id.
   */
  async file(of: Role, conversation: number | null = null): Promise<string> {
    const id = randomBytes(16).toString('base64url');
    const upload = { id, ownerId: this.people[of].id as AccountId, name: 'x.txt', announcedBytes: 1 };
    await this.server.database.query((sql) =>
      sql.begin(async (tx) => {
        const room = { maxAccountBytes: 1_000_000, maxTotalBytes: 1_000_000_000, maxUnfinishedUploads: 1_000 };
        await insertUpload(tx, upload, room);
        await finishUpload(tx, id, { size: 1, type: 'text/plain' });
        if (conversation === null) return;
        await tx`update file set conversation_id = ${conversation}, seq = 1 where id = ${id}`;
      }),
    );
    return id;
  }

  /** Posts a message of the owner into the private conversation; resolves to its seq. */
  async postPrivately(): Promise<number> {
    const input = { conversation: this.private, text: 'x' };
    return (await callAs<{ seq: number }>(this.server, this.people.owner, 'messages.send', input)).seq;
  }

  /**
   * The seq of a message of the caller in the group. For callers outside the group, it is that of the first message.
   */
  async ownMessage(kind: Caller): Promise<number> {
    const isIn = kind !== 'anonymous' && kind !== 'stranger' && kind !== 'former' && kind !== 'administrator';
    return isIn ? this.post(kind) : 1;
  }
}

/** The registration of a telephone with a new push token, for the project in the configuration of the stage. */
export function newDevice(): { kind: 'google'; token: string } {
  return { kind: 'google', token: `device-${randomInt(1, 2 ** 47)}` };
}

/** A random telephone number, in E.164. */
export function randomPhone(): string {
  return `+4917${String(randomInt(10_000_000, 100_000_000))}`;
}

/** Creates the accounts of a situation with their sessions. The two bots belong to the owner. */
async function makePeople(tx: Transaction, scope: Scope | null): Promise<Record<Role, TestPerson>> {
  const mark = newSessionToken('user')
    .token.slice(4, 14)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '0');
  const people = new Map<Role, TestPerson>();
  for (const role of ROLES) {
    const isBot = role === 'bot' || role === 'unscoped';
    const nick = `${role}-${mark}`;
    const [row] = await tx<{ id: AccountId }[]>`
      insert into account (kind, nick, name, role, owner_id)
      values (${isBot ? 'bot' : 'user'}, ${nick}, ${role}, ${installationRole(role)},
        ${isBot ? people.get('owner')!.id : null})
      returning id`;
    people.set(role, { id: row!.id, nick, ...(await openSession(tx, row!.id, scopesOf(role, scope))) });
  }
  return Object.fromEntries(people) as Record<Role, TestPerson>;
}

function installationRole(role: Role): 'admin' | 'bot' | 'user' {
  if (role === 'administrator') return 'admin';
  return role === 'bot' || role === 'unscoped' ? 'bot' : 'user';
}

function scopesOf(role: Role, scope: Scope | null): readonly Scope[] | null {
  if (role === 'bot') return scope === null ? scopes : [scope];
  if (role === 'unscoped') return scope === null ? [] : scopes.filter((each) => each !== scope);
  return null;
}

async function openSession(
  tx: Sql | Transaction,
  accountId: AccountId,
  held: readonly Scope[] | null,
): Promise<{ token: string; session: SessionOrTokenId }> {
  const { token } = newSessionToken(held === null ? 'user' : 'bot');
  const tokenHash = hashSessionToken(token);
  const session = await insertSessionOrToken(tx, {
    accountId,
    tokenHash,
    label: 'test',
    scopes: held,
    expiresAt: null,
  });
  return { token, session };
}

async function makeMembers(
  tx: Transaction,
  people: Record<Role, TestPerson>,
  conversationId: ConversationId,
): Promise<void> {
  for (const role of ['former', 'member', 'admin', 'owner', 'bot', 'unscoped', 'bystander'] as const) {
    const groupRole = role === 'admin' || role === 'owner' ? role : 'member';
    await tx`
      insert into membership (conversation_id, account_id, role)
      values (${conversationId}, ${people[role].id}, ${groupRole})`;
  }
}

async function makePrivate(tx: Transaction, { owner, member }: Record<Role, TestPerson>): Promise<number> {
  const [row] = await (tx as unknown as Sql)<{ id: number }[]>`
    with made as (insert into conversation (kind, title) values ('private', null) returning id)
    insert into conversation_head (conversation_id) select id from made returning conversation_id as id`;
  const id = row!.id;
  const [low, high] = [owner.id, member.id].sort((a, b) => a - b) as [number, number];
  await tx`insert into private_conversation (conversation_id, low_id, high_id) values (${id}, ${low}, ${high})`;
  for (const account of [low, high]) {
    await tx`insert into membership (conversation_id, account_id, role) values (${id}, ${account}, 'member')`;
  }
  return id;
}
