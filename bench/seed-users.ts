import { hashSessionToken, newSessionToken } from '../src/operations/core/session-cache.ts';
import type { ServerProcess } from '../test/support/server-process.ts';
import { asSuperuser } from './seed-data.ts';

/** The nick of the nth person of a group, counted from 0. */
export function nickOf(group: number, n: number): string {
  return `person-${group}-${n}`;
}

/** Inserts people into the database as members of one group, each with a session. Resolves with the tokens. */
export async function createUsers(server: ServerProcess, group: number, people: number): Promise<string[]> {
  const tokens = Array.from({ length: people }, () => newSessionToken('user').token);
  await asSuperuser(server, async (sql) => {
    const nicks = tokens.map((_, n) => nickOf(group, n));
    await sql`
      with who as (
        insert into account (kind, nick, name) select 'user', nick, nick from unnest(${nicks}::text[]) as n(nick)
        returning id, nick
      ), member as (
        insert into membership (conversation_id, account_id, role) select ${group}, id, 'member' from who
      )
      insert into session (account_id, token_hash, label)
      select w.id, t.hash, 'bench' from who w
      join unnest(${nicks}::text[], ${tokens.map(hashSessionToken)}::text[]) as t(nick, hash) on t.nick = w.nick`;
    await sql`analyze`;
  });
  return tokens;
}
