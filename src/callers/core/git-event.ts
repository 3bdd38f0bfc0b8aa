import { makeAlertUpdate } from './alert-update.ts';
import type { CallerRequest } from './caller-format.ts';
import {
  card,
  ignoredEvent,
  messageForm,
  type AlertUpdate,
  type IgnoredEvent,
  type MessageForm,
  type Mood,
} from './message-form.ts';
import { clipped } from './plain-text.ts';
import { matchesAnyPattern } from './wildcards.ts';
import { objectOf, objectsOf, stringOf, type JsonObject } from './values.ts';

/** What a message shows of an event of a git host. */
export interface GitEvent {
  /** What happened, such as "ada pushed 3 commits". */
  readonly summary: string;
  /** The place of the event: "org/repo", "org/repo:main" or "org". */
  readonly repositoryOrOrg: string;
  readonly url?: string;
  readonly text?: string;
  readonly mood?: Mood | null;
  /** The branch that the event is about, which the query parameter `branches` is compared with. */
  readonly branch?: string;
  readonly alert?: AlertUpdate | null;
}

/**
 * Reads an event. Returns null if the event is not shown: its action does not matter, or another event of the host says
 * the same.
 */
export type GitEventReader = (body: JsonObject) => GitEvent | null;

interface NamedEvent {
  readonly name: string;
  readonly action: string;
}

const MAX_EVENT_NAME_LENGTH = 100;
const MAX_COMMITS = 10;
const MAX_LINE_LENGTH = 200;
const MAX_EXCERPT_LENGTH = 500;
/**
 * The number of characters at the beginning of a text that are searched for a line or an excerpt. It is greater than
 * the length of an excerpt, since most of the characters may be HTML comments.
 */
const MAX_SEARCHED_LENGTH = 8_000;
const SHORT_HASH_LENGTH = 7;
const NO_COMMIT = /^0+$/;

/**
 * Makes a message of an event. The webhook's URL may select events and branches, by patterns with `*`:
 * `?events=push,issues.opened`, `?branches=main,release/*`. Events without a branch are shown in any case.
 */
export function readGitEvent(
  { body, query }: CallerRequest,
  event: NamedEvent,
  readers: ReadonlyMap<string, GitEventReader>,
): MessageForm | IgnoredEvent {
  const name = clipped(event.name, MAX_EVENT_NAME_LENGTH, '') || 'unknown';
  const fullName = event.action === '' ? name : clipped(`${name}.${event.action}`, MAX_EVENT_NAME_LENGTH, '');
  const reader = readers.get(name);
  if (reader === undefined) return ignoredEvent(name);
  if (!matchesAnyPattern(query.get('events'), name, fullName)) return ignoredEvent(fullName);
  const gitEvent = reader(body);
  if (gitEvent === null) return ignoredEvent(fullName);
  const branch = gitEvent.branch ?? '';
  if (branch !== '' && !matchesAnyPattern(query.get('branches'), branch)) return ignoredEvent(fullName);
  return formOf(gitEvent);
}

function formOf({
  summary,
  repositoryOrOrg: place,
  url = '',
  text = '',
  mood = null,
  alert = null,
}: GitEvent): MessageForm {
  const title = place === '' ? summary : `[${firstLine(place)}] ${summary}`;
  return messageForm({ cards: [card({ title, url, text, mood })], hasStrangersText: true, alert });
}

/** The first line that is not blank, at most 200 characters of it. */
export function firstLine(text: string): string {
  const trimmed = text.slice(0, MAX_SEARCHED_LENGTH).trimStart();
  const end = trimmed.search(/[\r\n]/);
  return clipped((end === -1 ? trimmed : trimmed.slice(0, end)).trimEnd(), MAX_LINE_LENGTH, '…');
}

/** The beginning of a long text without HTML comments, of which templates of issues have many. */
export function excerpt(text: string): string {
  const searched = text.slice(0, MAX_SEARCHED_LENGTH).replaceAll('\r\n', '\n');
  const parts: string[] = [];
  let position = 0;
  while (position < searched.length) {
    const start = searched.indexOf('<!--', position);
    parts.push(searched.slice(position, start === -1 ? undefined : start));
    const end = start === -1 ? -1 : searched.indexOf('-->', start);
    if (end === -1) break;
    position = end + '-->'.length;
  }
  const visible = parts.join('').trim();
  return clipped(visible.replace(/\n{3,}/g, '\n\n'), MAX_EXCERPT_LENGTH, '…');
}

export const shortHash = (hash: string): string => hash.slice(0, SHORT_HASH_LENGTH);

/**
 * True for a hash of zeros. Hosts send it as the commit before a branch was created, and as that after a branch was
 * deleted.
 */
export const isNoCommit = (hash: string): boolean => NO_COMMIT.test(hash);

/** The name of a branch or tag, without `refs/heads/` or `refs/tags/`. */
export const refName = (ref: string): string => firstLine(ref.replace(/^refs\/(?:heads|tags)\//, ''));

/** A text such as "issue #5: Title", without the number or the title if the event lacks it. */
export function numberedTitle(kind: string, number: unknown, title: unknown, sign = '#'): string {
  const numberText = firstLine(stringOf(number));
  const name = numberText === '' ? kind : `${kind} ${sign}${numberText}`;
  const line = firstLine(stringOf(title));
  return line === '' ? name : `${name}: ${line}`;
}

export function countOfCommits(count: number): string {
  return count === 1 ? '1 commit' : `${count} commits`;
}

/**
 * One line for each commit, at most ten, in the order of the host. `count`: how many commits there are; hosts list only
 * a part of many.
 */
export function commitLines(commits: unknown, count: number): string {
  const lines = objectsOf(commits, MAX_COMMITS).map(commitLine);
  if (lines.length > 0 && count > lines.length) lines.push(`… and ${count - lines.length} more`);
  return lines.join('\n');
}

/** A line with hash, first line of the message and author: "a1b2c3d Fix the door — Ada Lovelace". */
export function commitLine(commit: JsonObject): string {
  const author = objectOf(commit['author']);
  const authorName = firstLine(stringOf(author['name']) || stringOf(author['username']));
  const parts = [shortHash(stringOf(commit['id'])), firstLine(stringOf(commit['message']))].filter(
    (each) => each !== '',
  );
  return [parts.join(' '), authorName].filter((each) => each !== '').join(' — ');
}

/**
 * The result of a run of tests or a build. `recovered`: it succeeded, and the host says that the previous run failed.
 */
export type RunEnding = 'failed' | 'recovered' | 'succeeded';

/**
 * The alert of a run of tests or a build. `key` must be the same for all runs of a workflow and branch, so that a later
 * success resolves the alert. Null if the key has only white space and control characters.
 */
export function alertOfRun(ending: RunEnding, ...key: readonly string[]): AlertUpdate | null {
  const state = ending === 'failed' ? 'firing' : 'resolved';
  const details = ending === 'succeeded' ? { onlyAfterFiring: true } : {};
  return makeAlertUpdate(key.filter((part) => part !== '').join('/'), state, [], details);
}
