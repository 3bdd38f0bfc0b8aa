import type { CallerFormat } from './core/caller-format.ts';
import { messageForm } from './core/message-form.ts';
import { clipped } from './core/plain-text.ts';
import { isObject, stringOf } from './core/values.ts';

const MAX_LINES = 100;
const MAX_DEPTH = 8;
const MAX_NAME_LENGTH = 200;
const MAX_VALUE_LENGTH = 1_000;
const MAX_LIST_ITEMS = 100;

/**
 * Any JSON object; used only if the URL has the suffix `json`. The message has a line for each value, with the path to
 * the value as its name.
 */
export const json: CallerFormat = {
  name: 'json',
  matches: () => false,
  read: ({ body }) => {
    const lines: string[] = [];
    const isComplete = addLines(lines, '', body, 0);
    return messageForm({ text: [...lines, isComplete ? '' : '… and more'].filter((line) => line !== '').join('\n') });
  },
};

/** Adds the lines for a value. False: a part of the value was left out because of MAX_LINES. */
function addLines(lines: string[], valuePath: string, value: unknown, depth: number): boolean {
  const text = depth === 0 ? null : inlineText(value, depth);
  if (text !== null) {
    if (lines.length >= MAX_LINES) return false;
    lines.push(`${valuePath}: ${clipped(text, MAX_VALUE_LENGTH)}`);
    return true;
  }
  const container = value as Readonly<Record<string, unknown>>;
  for (const key in container) {
    const innerPath = clipped(valuePath === '' ? key : `${valuePath}.${key}`, MAX_NAME_LENGTH, '…');
    if (!addLines(lines, innerPath, container[key], depth + 1)) return false;
  }
  return true;
}

/** The text of a value in one line; null: each member of the value needs a line of its own. */
function inlineText(value: unknown, depth: number): string | null {
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]';
    if (!value.some(isContainer)) return listText(value);
    return depth >= MAX_DEPTH ? '[…]' : null;
  }
  if (isObject(value)) return depth >= MAX_DEPTH ? '{…}' : hasKeys(value) ? null : '{}';
  return scalarText(value);
}

function listText(list: readonly unknown[]): string {
  const hiddenCount = list.length - MAX_LIST_ITEMS;
  const items = list.slice(0, MAX_LIST_ITEMS).map(scalarText);
  return [...items, ...(hiddenCount > 0 ? [`… and ${hiddenCount} more`] : [])].join(', ');
}

const isContainer = (value: unknown): boolean => typeof value === 'object' && value !== null;
const scalarText = (value: unknown): string =>
  value === null ? 'null' : stringOf(value) === '' ? '""' : stringOf(value);

function hasKeys(value: object): boolean {
  for (const _ in value) return true;
  return false;
}
