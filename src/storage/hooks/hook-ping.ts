import type { HookFormat } from '../../model/hook-format.ts';
import type { Sql } from '../db/connection.ts';
import type { HookReference } from './hook-control.ts';
import type { HookSignature } from './hooks.ts';

/** The fields of a hook that a ping needs. */
export interface PingTarget extends HookReference {
  readonly title: string;
  readonly url: string;
  readonly format: HookFormat;
  readonly signature: HookSignature;
  readonly secretSealed: string;
  readonly oldSecretSealed: string | null;
  readonly oldSecretUntil: Date | null;
}

/** The fields of a hook that an example of its requests needs. */
export interface ExampleTarget extends PingTarget {
  readonly batch: number;
}

/** Null: the group has no such hook, or it is removed. */
export async function findExampleTarget(
  sql: Sql,
  { conversationId, hookId }: HookReference,
): Promise<ExampleTarget | null> {
  const [row] = await sql<ExampleTarget[]>`
    select ${pingColumns(sql)}, r.batch from reverse_hook r join conversation c on c.id = r.conversation_id
    where r.id = ${hookId} and r.conversation_id = ${conversationId} and r.removed_at is null`;
  return row ?? null;
}

const pingColumns = (sql: Sql) => sql`
  r.id as "hookId", r.conversation_id as "conversationId", c.title, r.url, r.format, r.signature,
  r.secret_sealed as "secretSealed", r.old_secret_sealed as "oldSecretSealed", r.old_secret_until as "oldSecretUntil"`;

/**
 * Claims the right to ping a hook now. All processes together get it at most once in `intervalS` seconds. Null: the
 * last ping is too recent; `undefined`: the group has no such hook, or it is removed.
 */
export async function claimPing(
  sql: Sql,
  { conversationId, hookId }: HookReference,
  intervalS: number,
): Promise<PingTarget | null | undefined> {
  // A `pinged_at` in the future was written before the clock was set back: it blocks no ping.
  const [claimed] = await sql<PingTarget[]>`
    update reverse_hook r set pinged_at = now()
    from conversation c
    where r.id = ${hookId} and r.conversation_id = ${conversationId} and r.removed_at is null and c.id = r.conversation_id
      and (r.pinged_at is null or r.pinged_at > now() or r.pinged_at <= now() - make_interval(secs => ${intervalS}))
    returning ${pingColumns(sql)}`;
  if (claimed !== undefined) return claimed;
  const [found] = await sql`
    select from reverse_hook where id = ${hookId} and conversation_id = ${conversationId} and removed_at is null`;
  return found === undefined ? undefined : null;
}
