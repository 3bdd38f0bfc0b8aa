import { readFileSync, statSync } from 'node:fs';

/** The template of an e-mail with an activation code. Subject and text contain {code}, {project} and {hours}. */
export interface EmailTemplate {
  readonly subject: string;
  readonly text: string;
}

/** The values that replace {code}, {project} and {hours}. */
type TemplateValues = Readonly<Record<'code' | 'project' | 'hours', string>>;

const MAX_TEMPLATE_BYTES = 64 * 1024;
const MAX_SUBJECT_LENGTH = 200;
const PLACEHOLDER_NAMES: readonly string[] = ['code', 'project', 'hours'];
const PLACEHOLDER = /\{([A-Za-z_-]+)\}/g;

/** The template that is used if the configuration names none. */
export const DEFAULT_EMAIL_TEMPLATE: EmailTemplate = {
  subject: '{code} is your code for {project}',
  text: [
    'Your code for {project} is {code}',
    '',
    'Type it where you were asked for it; it is good for one day. Give it to nobody: no administrator will ask for it.',
    '',
    'If you did not ask for a code, somebody may have mistyped an address. There is nothing to do then.',
    '',
  ].join('\n'),
};

/**
 * Reads the template from a file. Returns a sentence with the file, the line and the problem if the template is
 * invalid.
 */
export function readEmailTemplate(path: string): EmailTemplate | string {
  const contentOrProblem = readText(path);
  return typeof contentOrProblem === 'string' ? contentOrProblem : parseEmailTemplate(path, contentOrProblem.content);
}

/** Inserts the values into a template in one pass, so that a value that looks like a placeholder is not replaced. */
export function fillEmailTemplate({ subject, text }: EmailTemplate, values: TemplateValues): EmailTemplate {
  const fill = (template: string): string =>
    template.replace(PLACEHOLDER, (whole, word: string) => (values as Record<string, string>)[word] ?? whole);
  return { subject: fill(subject), text: fill(text) };
}

function readText(path: string): { content: string } | string {
  try {
    const stat = statSync(path);
    if (!stat.isFile()) return `${path} is not a file`;
    if (stat.size > MAX_TEMPLATE_BYTES) return `${path} is larger than 64 KiB`;
    return { content: new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path)) };
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    return code === 'ERR_ENCODING_INVALID_ENCODED_DATA'
      ? `${path} is not UTF-8 text`
      : `${path} cannot be read (${code})`;
  }
}

function parseEmailTemplate(path: string, content: string): EmailTemplate | string {
  const lines = content.replace(/\r\n?/g, '\n').split('\n');
  const at = (line: number, sentence: string): string => `${path}, line ${line}: ${sentence}`;
  const [subject = '', empty = '', ...text] = lines;
  if (subject.trim() === '') return at(1, 'the subject stands here, and it is empty');
  if (subject.length > MAX_SUBJECT_LENGTH) return at(1, `the subject has more than ${MAX_SUBJECT_LENGTH} characters`);
  if (empty.trim() !== '') return at(2, 'an empty line has to stand between the subject and the text');
  for (const [index, line] of lines.entries()) {
    if (/[^\P{Cc}\t]/u.test(line)) return at(index + 1, 'it holds a control character');
    const wrong = [...line.matchAll(PLACEHOLDER)].find(([, word]) => !PLACEHOLDER_NAMES.includes(word!));
    if (wrong !== undefined) return at(index + 1, `${wrong[0]} is none of {code}, {project} and {hours}`);
  }
  if (!lines.some((line) => line.includes('{code}')))
    return `${path} does not hold {code}: nobody would learn the code`;
  return { subject: subject.trim(), text: text.join('\n') };
}
