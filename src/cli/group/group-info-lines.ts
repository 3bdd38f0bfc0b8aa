import type { groupInfo } from '../../operations/groups/groups.ts';
import { formatFields, formatTable } from '../../../client/terminal/table.ts';
import { expectationTable } from './group-expect.ts';

type GroupInfo = Awaited<ReturnType<(typeof groupInfo)['run']>>;
type Addresses = NonNullable<GroupInfo['addresses']>;
type RefusedPosts = NonNullable<GroupInfo['refused_posts']>;

/** The most programs that the line of an address lists by name. For the others it shows their number. */
const MAX_NAMED_PROGRAMS = 4;

/** The lines that show a group on a terminal. Text of other people in them is sanitized. */
export function groupInfoLines(info: GroupInfo): string[] {
  const { addresses = [], hooks = [], loops = [], refused_posts = [], expectations = [], created_at, ...group } = info;
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
    ...addressLines(addresses),
    ...section('', hookRows, ['HOOK', 'STATE', 'PENDING', 'URL']),
    ...loops.flatMap(loopLines),
    ...refusedPostLines(refused_posts),
    ...(expectations.length === 0 ? [] : ['', ...expectationTable(expectations)]),
  ];
}

function loopLines(hookId: number): string[] {
  return [
    '',
    `Reverse webhook ${hookId} looks like a loop: its receiver posts into the group within 2 s of each delivery of such a post.`,
    'Let the receiver copy the header klatch-hops into its posts, or change the hook: "skip": ["webhook"].',
  ];
}

/**
 * The lines of a table with one line for each way to post into a group: the text to paste, and the programs to paste it
 * into.
 */
export function addressLines(addresses: Addresses): string[] {
  const rows = addresses.map(({ name, values, programs }) => [name, pastedText(values), programsText(programs)]);
  return section('Paste into other programs (docs/callers.md has the lines for each of them):', rows, [
    'FOR',
    'PASTE',
    'SUCH AS',
  ]);
}

function pastedText(values: Addresses[number]['values']): string {
  const [only, ...others] = values;
  if (only !== undefined && others.length === 0) return only.value;
  return values.map(({ name, value }) => `${name} ${value}`).join(', ');
}

function programsText(programs: readonly string[]): string {
  const unnamedCount = programs.length - MAX_NAMED_PROGRAMS;
  const named = programs.slice(0, MAX_NAMED_PROGRAMS).join(', ');
  return unnamedCount > 0 ? `${named} and ${unnamedCount} more` : named;
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

/** The lines of a table, with a blank line and a title before it; none if the table has no rows. */
function section(title: string, rows: (string | number)[][], heading: readonly string[]): string[] {
  if (rows.length === 0) return [];
  return ['', ...(title === '' ? [] : [title]), ...formatTable(heading, rows)];
}
