import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { DEFAULT_EMAIL_TEMPLATE, fillEmailTemplate, readEmailTemplate } from '../../src/config/email-template.ts';
import { loadConfig } from '../../src/config/load.ts';
import { Folder, MINIMAL } from './folder.ts';
import { withoutPositions } from './load.ts';

const SMTP = 'services.smtp { host = "mail.example.org", from = "klatch@example.org", template = "letter.txt" }\n';

/** The error for an e-mail template, without the folder; null if the template is accepted. */
function said(folder: Folder): string | null {
  const file = folder.write('server.conf', MINIMAL + SMTP);
  try {
    loadConfig(file, { env: {} });
    return null;
  } catch (error) {
    return withoutPositions((error as Error).message, folder.path);
  }
}

describe('a letter of the installation', () => {
  test('has a subject, an empty line and a text, with the values in the place of their names', () => {
    using folder = new Folder();
    const path = folder.write('letter.txt', '{project}: hello \r\n\r\nThe code is {code}.\r\n{hours} h {x} {\r\n');
    expect(readEmailTemplate(path)).toContain('{x} is none of');
    folder.write('letter.txt', '{project}: hello \r\n\r\nThe code is {code}.\r\n{hours} h {\r\n');
    const emailTemplate = readEmailTemplate(path);
    expect(emailTemplate).toEqual({ subject: '{project}: hello', text: 'The code is {code}.\n{hours} h {\n' });
    expect(said(folder)).toBeNull();
    expect(fillEmailTemplate(emailTemplate as never, { code: '123456', project: '{code}', hours: '5' })).toEqual({
      subject: '{code}: hello',
      text: 'The code is 123456.\n5 h {\n',
    });
  });

  test.each([
    ['', 'letter.txt, line 1: the subject stands here, and it is empty'],
    ['Hello\nYour code: {code}\n', 'letter.txt, line 2: an empty line has to stand between the subject and the text'],
    ['Hello\n\nWelcome\n', 'letter.txt does not hold {code}: nobody would learn the code'],
    ['Hello\n\nCode\n{cod}\n', 'letter.txt, line 4: {cod} is none of {code}, {project} and {hours}'],
    ['Hello\n\n{code}\u0000\n', 'letter.txt, line 3: it holds a control character'],
    [`${'x'.repeat(201)}\n\n{code}\n`, 'letter.txt, line 1: the subject has more than 200 characters'],
  ])('with a mistake is refused with file, line and key: %j', (text, sentence) => {
    using folder = new Folder();
    folder.write('letter.txt', text);
    const line = MINIMAL.split('\n').length;
    expect(said(folder)).toBe(`server.conf:${line}: services.smtp.template: ${sentence}`);
  });

  test('that is no text file is refused', () => {
    using folder = new Folder();
    expect(said(folder)).toContain('letter.txt cannot be read (ENOENT)');
    mkdirSync(join(folder.path, 'letter.txt'));
    expect(said(folder)).toContain('letter.txt is not a file');
    using other = new Folder();
    const path = other.write('letter.txt', `Hello\n\n${'{code}'.repeat(20_000)}`);
    expect(said(other)).toContain('letter.txt is larger than 64 KiB');
    other.write('letter.txt', Buffer.from([0x48, 0x0a, 0x0a, 0xff, 0xfe]));
    expect(said(other)).toContain('letter.txt is not UTF-8 text');
    chmodSync(path, 0o600);
  });

  test('is ours without one, which is a letter by the same rules', () => {
    using folder = new Folder();
    folder.write('letter.txt', `${DEFAULT_EMAIL_TEMPLATE.subject}\n\n${DEFAULT_EMAIL_TEMPLATE.text}`);
    expect(readEmailTemplate(join(folder.path, 'letter.txt'))).toEqual(DEFAULT_EMAIL_TEMPLATE);
  });
});

describe('a mail server that is half set up', () => {
  test.each([
    [
      'host = "mail.example.org"',
      'services.smtp.from: is not set beside host: no activation code will be sent by mail',
    ],
    ['from = "a@b.org"', 'services.smtp.host: is not set beside from: no activation code will be sent by mail'],
    ['password = hidden7', 'services.smtp.host: is not set beside password: no activation code will be sent by mail'],
    [
      'host = h, from = "a@b.org", user = u',
      'services.smtp.password: is not set beside user: the login will be refused',
    ],
    ['host = h, from = "a@b.org", password = hidden7', 'services.smtp.user: is not set beside password'],
  ])('is a warning: %s', (keys, sentence) => {
    using folder = new Folder();
    const { warnings } = loadConfig(folder.write('server.conf', `${MINIMAL}services.smtp { ${keys} }\n`), { env: {} });
    expect(warnings).toEqual([expect.stringContaining(sentence)]);
    expect(warnings.join()).not.toContain('hidden7');
  });
});
