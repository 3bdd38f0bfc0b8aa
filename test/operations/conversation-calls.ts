import type { AccountId, ConversationId } from '../../src/model/ids.ts';
import type { Scope } from '../../src/model/scopes.ts';
import type { SerializedChange, SerializedMessage } from '../../src/operations/core/serializers.ts';
import { callAs } from '../support/call.ts';
import { createPerson, signIn, type TestPerson } from '../support/people.ts';
import type { TestServer } from '../support/server.ts';

/** A page of `messages.history`. */
export interface HistoryAnswer {
  readonly messages: SerializedMessage[];
  readonly next: number | null;
}

/** The answer of `messages.send`. */
export interface SentMessage extends SerializedMessage {
  readonly conversation: number;
  readonly repeated: boolean;
}

/** A page of `conversations.sync`. */
export interface ChangesAnswer {
  readonly changes: SerializedChange[];
  readonly rev: number;
  readonly more: boolean;
}

export const send = (
  server: TestServer,
  person: TestPerson,
  conversation: number,
  text: string,
  more: object = {},
): Promise<SentMessage> => callAs(server, person, 'messages.send', { conversation, text, ...more });

export const history = (server: TestServer, person: TestPerson, input: object): Promise<HistoryAnswer> =>
  callAs(server, person, 'messages.history', input);

export const changes = (server: TestServer, person: TestPerson, input: object): Promise<ChangesAnswer> =>
  callAs(server, person, 'conversations.sync', input);

/** Creates a person and adds them to a group. */
export async function joined(
  server: TestServer,
  nick: string,
  group: number,
  role: 'owner' | 'admin' | 'member' = 'member',
): Promise<TestPerson> {
  const person = await createPerson(server, nick);
  await server.operate('groups.add-member', { group, user: nick, role });
  return person;
}

/** Signs the person in with another token, which has these scopes. */
export async function withScopes(server: TestServer, person: TestPerson, scopes: Scope[]): Promise<TestPerson> {
  return { ...person, ...(await signIn(server, person.id, scopes)) };
}

/** Inserts the private conversation of two people into the database. */
export async function privateOf(server: TestServer, first: TestPerson, second: TestPerson): Promise<ConversationId> {
  const [low, high] = [first.id, second.id].sort((a, b) => a - b) as [AccountId, AccountId];
  return server.database.query((sql) =>
    sql.begin(async (tx) => {
      const [row] = await tx<{ id: ConversationId }[]>`insert into conversation (kind) values ('private') returning id`;
      const { id } = row!;
      await tx`insert into conversation_head (conversation_id) values (${id})`;
      await tx`insert into private_conversation (conversation_id, low_id, high_id) values (${id}, ${low}, ${high})`;
      await tx`
        insert into membership (conversation_id, account_id, role)
        values (${id}, ${low}, 'member'), (${id}, ${high}, 'member')`;
      return id;
    }),
  );
}

/** Makes one account block another one. */
export async function block(server: TestServer, who: TestPerson, whom: TestPerson): Promise<void> {
  await server.database.query((sql) => sql`insert into block (account_id, blocked_id) values (${who.id}, ${whom.id})`);
}
