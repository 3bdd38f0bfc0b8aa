import type { z } from 'zod';
import { KlatchError } from '../../errors.ts';

/**
 * An error names at most this many mistakes, with at most this many characters each: an input may have thousands of
 * mistakes and long names.
 */
const MAX_ISSUES = 5;
const MAX_ISSUE_LENGTH = 300;

/**
 * Throws `invalid_input` if the input holds more than `maxValues` values, or a string or key that PostgreSQL cannot
 * store. It is not recursive, because the input may be nested a hundred thousand levels deep.
 */
export function checkValueCountAndStrings(input: unknown, maxValues: number): void {
  const uncheckedValues: [field: string, value: unknown][] = [['', input]];
  let valueCount = 0;
  const countAndCheck = (field: string, value: unknown): void => {
    valueCount += 1;
    if (valueCount > maxValues) throw invalid(`input: holds more than ${maxValues} values`);
    if (typeof value === 'string') checkString(field, value);
    else if (typeof value === 'object' && value !== null) uncheckedValues.push([field, value]);
  };
  for (let next = uncheckedValues.pop(); next !== undefined; next = uncheckedValues.pop()) {
    const [field, value] = next;
    if (Array.isArray(value)) for (const item of value) countAndCheck(field, item);
    else if (typeof value === 'object' && value !== null) {
      for (const key of Object.keys(value)) {
        checkString('a key', key);
        // For a nested value the error names the outermost key.
        countAndCheck(field === '' ? key : field, (value as Record<string, unknown>)[key]);
      }
    } else if (typeof value === 'string') checkString(field, value);
  }
}

function checkString(field: string, text: string): void {
  const shownField = field.length > MAX_ISSUE_LENGTH ? 'input' : field || 'input';
  if (text.includes('\u0000')) throw invalid(`${shownField}: must not hold the character NUL`);
  if (!text.isWellFormed()) throw invalid(`${shownField}: is not valid Unicode (it holds half of a surrogate pair)`);
}

/** The error for an input that does not fit its schema, with the first few mistakes and their places. */
export function validationError({ issues }: z.ZodError): KlatchError {
  const messages = issues.slice(0, MAX_ISSUES).map((found) => {
    const issueText = `${found.path.join('.') || 'input'}: ${sentenceOf(found)}`;
    return issueText.length > MAX_ISSUE_LENGTH ? `${issueText.slice(0, MAX_ISSUE_LENGTH).toWellFormed()} …` : issueText;
  });
  if (issues.length > MAX_ISSUES) messages.push(`and ${issues.length - MAX_ISSUES} more`);
  return invalid(messages.join('; '));
}

/**
 * The message of zod, except for a missing value and for a union. For a union, zod's message does not name the accepted
 * types.
 */
function sentenceOf(issue: z.core.$ZodIssue): string {
  if (isMissing(issue)) return 'is required';
  if (issue.code !== 'invalid_union') return issue.message;
  const alternativeIssues = issue.errors.flat();
  if (alternativeIssues.some(isMissing)) return 'is required';
  const [kind] = alternativeIssues.filter((each) => each.code !== 'invalid_type');
  // The value has the type of one alternative of the union, but is invalid in another way.
  if (kind !== undefined) return kind.message;
  const expected = alternativeIssues.flatMap((each) => (each.code === 'invalid_type' ? [each.expected] : []));
  return `Invalid input: expected ${[...new Set(expected)].join(' or ')}`;
}

function isMissing({ code, message }: z.core.$ZodIssue): boolean {
  return code === 'invalid_type' && message.endsWith('received undefined');
}

function invalid(sentence: string): KlatchError {
  return new KlatchError('invalid_input', { sentence });
}
