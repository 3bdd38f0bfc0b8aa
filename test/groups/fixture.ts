import { callAs } from '../support/call.ts';
import { createPerson, type TestPerson } from '../support/people.ts';
import type { TestServer } from '../support/server.ts';

/** People with a session, by nick. */
export type People = Readonly<Record<string, TestPerson>>;

/** Creates accounts, all at the same time. `root` is an administrator. */
export async function createPeople(server: TestServer, ...nicks: readonly string[]): Promise<People> {
  const made = await Promise.all(nicks.map((nick) => createPerson(server, nick, { admin: nick === 'root' })));
  return Object.fromEntries(made.map((person) => [person.nick, person]));
}

/** Creates a group that `owner` owns, with other members. */
export async function createGroup(
  server: TestServer,
  owner: TestPerson,
  group: { title?: string; public?: boolean; members?: Readonly<Record<string, 'admin' | 'member'>> } = {},
): Promise<number> {
  const { members = {}, title = 'Group', ...rest } = group;
  const { id } = await callAs<{ id: number }>(server, owner, 'groups.create', { title, ...rest });
  for (const [user, role] of Object.entries(members))
    await callAs(server, owner, 'groups.add-member', { group: id, user, role });
  return id;
}

/** The role of each member, by nick. */
export async function rolesIn(server: TestServer, group: number): Promise<Record<string, string>> {
  const rows = await server.database.query(
    (sql) => sql<{ nick: string; role: string }[]>`
      select a.nick, m.role from membership m join account a on a.id = m.account_id
      where m.conversation_id = ${group} order by a.nick`,
  );
  return Object.fromEntries(rows.map(({ nick, role }) => [nick, role]));
}

/** The notices that the members got, in order, with their actors. */
export async function noticesIn(server: TestServer, group: number): Promise<readonly unknown[]> {
  const rows = await server.database.query(
    (sql) => sql`
      select n.kind, a.nick as actor, n.details from notice n left join account a on a.id = n.actor_id
      where n.conversation_id = ${group} order by n.rev`,
  );
  return [...rows];
}

/** How often the calls succeeded and were refused: counts by error code, and of the successes. */
export async function outcomesOf(calls: readonly Promise<unknown>[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const result of await Promise.allSettled(calls)) {
    const key = result.status === 'fulfilled' ? 'done' : String((result.reason as { code?: string }).code);
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}
