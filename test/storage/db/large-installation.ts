export const GROUPS = 20_000;
export const MESSAGES = 5;

/** A large installation that is idle except for one group in a thousand. */
export const FILL = `
  insert into account (kind, name) select 'webhook', 'sender' from generate_series(1, ${GROUPS});
  insert into account (kind, nick, name) select 'user', 'nick ' || n, 'person' from generate_series(1, ${GROUPS}) n;
  insert into conversation (kind, title) select 'group', 'group ' || n from generate_series(1, ${GROUPS}) n;
  insert into conversation_head (conversation_id, last_seq, last_rev, last_at)
    select n, ${MESSAGES}, ${MESSAGES}, case when n % 1000 = 0 then now() else now() - interval '1 day' end
    from generate_series(1, ${GROUPS}) n;
  insert into membership (conversation_id, account_id, role)
    select n, ${GROUPS} + n, 'member' from generate_series(1, ${GROUPS}) n;
  insert into integration (conversation_id, account_id, token_hash, token_sealed)
    select n, n, 'hash ' || n, '-' from generate_series(1, ${GROUPS}) n;
  insert into message (conversation_id, seq, rev, sender_id, text, sent_at)
    select n, m, m, n, 'text', now() from generate_series(1, ${GROUPS}) n, generate_series(1, ${MESSAGES}) m;
  insert into notice (conversation_id, rev, kind)
    select n, 100 + m, 'joined' from generate_series(1, ${GROUPS}) n, generate_series(1, 2) m;
  insert into search_index_progress (conversation_id, indexed_rev) select n, ${MESSAGES} from generate_series(1, ${GROUPS}) n;
  insert into search_index (conversation_id, seq, sent_at, document)
    select n, m, now() - n * interval '1 s', to_tsvector('simple', 'common' || case when n % 1000 = 0 then ' rare' else '' end)
    from generate_series(1, ${GROUPS}) n, generate_series(1, ${MESSAGES}) m;
  insert into mention (account_id, conversation_id, seq)
    select ${GROUPS} + n, n, m from generate_series(1, ${GROUPS}) n, generate_series(1, ${MESSAGES}) m;
  insert into idempotency_key (conversation_id, key, seq, body_hash)
    select n, 'key ' || m, m, '-' from generate_series(1, ${GROUPS}) n, generate_series(1, ${MESSAGES}) m;
  insert into alert (conversation_id, source, key, seq, state, since)
    select n, 'test', 'alert ' || m, m, 'firing', now() from generate_series(1, ${GROUPS}) n, generate_series(1, ${MESSAGES}) m;
  insert into file (id, owner_id, name, type, size, received, state, conversation_id, seq)
    select lpad(n || case when m = 0 then 'f' else 'a' end, 22, '0'), n, 'name', 'text/plain', 1, 1, 'stored',
      case when m > 0 then n end, case when m > 0 then m end
    from generate_series(1, ${GROUPS}) n, generate_series(0, 1) m;
  insert into reverse_hook (conversation_id, url, secret_sealed, start_seq, cursor)
    select n, 'http://example.org/', '-', 0, ${MESSAGES} from generate_series(1, ${GROUPS}) n;
  update reverse_hook set events = array['message.updated'], event_start_rev = 0, event_cursor = 0 where id % 100 = 0;
  insert into hook_event (conversation_id, rev, after_seq, seq, kind, actor_id, at)
    select n, m, m, m, 'message.updated', n, now() from generate_series(100, ${GROUPS}, 100) n, generate_series(1, 5) m;
  insert into delivery_retry (conversation_id, hook_id, seq, last_seq, attempts, next_at)
    select n, n, m, m, 1, now() from generate_series(1, ${GROUPS}) n, generate_series(1, 2) m;
  insert into delivery_attempt (conversation_id, hook_id, seq, last_seq, attempt, at, outcome, duration_ms)
    select n, n, m, m, 1, now(), 'delivered', 1 from generate_series(1, ${GROUPS}) n, generate_series(1, ${MESSAGES}) m;
  insert into hook_stats (conversation_id, hook_id, five_minutes, delivered, failed, durations)
    select n, n, to_timestamp(floor(extract(epoch from now()) / 300) * 300), ${MESSAGES}, 0, array_fill(0, array[12])
    from generate_series(1, ${GROUPS}) n`;
