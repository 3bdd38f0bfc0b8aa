import type { groupInfo } from '../../operations/groups/groups.ts';
import { formatFields, formatTable } from '../../../client/terminal/table.ts';

type GroupInfo = Awaited<ReturnType<(typeof groupInfo)['run']>>;
type RefusedPosts = NonNullable<GroupInfo['refused_posts']>;

/** A group for a terminal; strangers' text in it is sanitized. */
export function groupInfoLines(info: GroupInfo): string[] {
  const { hooks = [], refused_posts = [], created_at, ...group } = info;
  const fields = formatFields([
    ['id', group.id],
    ['title', group.title],
    ['about', group.about],
    ['created', created_at],
    ['public', group.public ? 'yes' : 'no'],
    ['archived', group.archived ? 'yes' : 'no'],
    ['members', group.members],
    ['messages', group.messages],
    ['webhook', group.webhook ?? null],
    ['hooks', hooks.length],
  ]);
  const hookRows = hooks.map(({ id, state, pending, url }) => [id, state, pending, url]);
  return [
    ...fields,
    ...section('', hookRows, ['HOOK', 'STATE', 'PENDING', 'URL']),
    ...refusedPostLines(refused_posts),
  ];
}

function refusedPostLines(refused: RefusedPosts): string[] {
  const rows = refused.map(({ last_at, posts, user_agent, format, code, sentence }) => [
    last_at,
    posts,
    user_agent ?? '-',
    format ?? '-',
    code,
    sentence,
  ]);
  const heading = ['LAST', 'POSTS', 'PROGRAM', 'READ AS', 'CODE', 'ANSWER'];
  return section('Posts of the last 7 days that were refused for what they hold:', rows, heading);
}

/** A table behind a blank line, if it has rows. */
function section(title: string, rows: (string | number)[][], heading: readonly string[]): string[] {
  if (rows.length === 0) return [];
  return ['', ...(title === '' ? [] : [title]), ...formatTable(heading, rows)];
}
