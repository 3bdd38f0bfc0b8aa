import { describe, expect, test } from '@jest/globals';
import { loadConfig } from '../../src/config/load.ts';
import { checkConfiguration } from '../../src/doctor/configuration.ts';
import { Folder, MINIMAL } from './folder.ts';
import { withoutPositions } from './load.ts';

const PASSWORD = 'services.postgresql.password';
const CUT = 'ends where # or // begins a comment: put the value in double quotes if that is part of it';
const JOINED = 'is put together of text with quotes and without: the quotes are no part of the value';
const QUOTED = 'holds ${…} in quotes, where it stays as it is: write it outside of the quotes';
const MARKS =
  'begins and ends with a quotation mark that is part of the value: only one pair of double quotes is taken off';
const HOME = 'begins with ~, which is not a home directory here: write the path in full';
const HEADER = 'holds characters that no header of HTTP carries: only printable ASCII gets through';
const BLANK = 'is blank: it holds nothing but white space';
const GATE = 'services.klatch-activation { uri = "https://gate.example", auth-token =';
const S3 = 'services.aws.s3 { default-bucket = files, secret-key = x, access-key =';

/** The warnings for lines that follow the two lines every configuration needs, without the folder. */
function warned(text: string, env: Record<string, string> = {}): string[] {
  using folder = new Folder();
  const file = folder.write('server.conf', `${MINIMAL}${text}\n`);
  const { warnings } = loadConfig(file, { env });
  const { config, verdicts } = checkConfiguration(file, env);
  expect(config).not.toBeNull();
  const found = verdicts.filter(({ level }) => level === 'warning').map((verdict) => verdict.found);
  expect(found).toEqual(expect.arrayContaining([...warnings]));
  return warnings.map((warning) => withoutPositions(warning, folder.path));
}

describe('what is accepted and hardly meant is a warning of "config check" and of the doctor, without its value', () => {
  test.each([
    [`${PASSWORD} = hunter2#hunter3`, `${PASSWORD}: ${CUT}`],
    [`${PASSWORD} = hunter2//hunter3`, `${PASSWORD}: ${CUT}`],
    [`${PASSWORD} = 1234#5678`, `${PASSWORD}: ${CUT}`],
    ['services { smtp { host = a, from = "a@b", user = u, password = hunter2#3\n} }', `services.smtp.password: ${CUT}`],
    [`${PASSWORD} = hunter"2"x`, `${PASSWORD}: ${JOINED}`],
    [`${PASSWORD} = 'hunter2'`, `${PASSWORD}: ${MARKS}`],
    [`${PASSWORD} = "'hunter2'"`, `${PASSWORD}: ${MARKS}`],
    [`${PASSWORD} = “hunter2”`, `${PASSWORD}: ${MARKS}`],
    [`${PASSWORD} = \${FROM_ENV}`, `${PASSWORD}: ${MARKS}`],
    [`project-name = 'Chat of us'`, `project-name: ${MARKS}`],
    [`data-dir = "'/var/lib/klatch'"`, `data-dir: ${MARKS}`],
    ['include "none.conf"', 'includes a file that is not there'],
    ['http { include file("none") }', 'http: includes a file that is not there'],
    ['data-dir = "~/klatch"', `data-dir: ${HOME}`],
    ['services.file-storage.location = ~klatch/files', `services.file-storage.location: ${HOME}`],
    [`${PASSWORD} = "\${DB_PASSWORD}"`, `${PASSWORD}: ${QUOTED}`],
    ['project-name = """${?NAME}"""', `project-name: ${QUOTED}`],
    [`${GATE} "hunter2 ü" }`, `services.klatch-activation.auth-token: ${HEADER}`],
    [`${GATE} "hunter2 " }`, `services.klatch-activation.auth-token: ${HEADER}`],
    [`${S3} "hunter2\u20ac" }`, `services.aws.s3.access-key: ${HEADER}`],
    ['project-name = " "', `project-name: ${BLANK}`],
    ['services.postgresql.user = "\u00a0"', `services.postgresql.user: ${BLANK}`],
    [`${PASSWORD} = "  "`, `${PASSWORD}: ${BLANK}`],
  ])('%s', (line, sentence) => {
    const warnings = warned(line, { FROM_ENV: '"hunter2"' });
    expect(warnings).toEqual([`server.conf:3: ${sentence}`]);
    expect(warnings.join()).not.toContain('hunter');
  });

  test.each([
    `${PASSWORD} = hunter2 # the new one`,
    `${PASSWORD} = "hunter2"# the new one`,
    `${PASSWORD} = "hunter#2//3"`,
    'http.port = 8080 // http',
    'delivery.retry = [1s, 2s]# twice',
    'project-name = "The "${project-name}" of us"',
    `project-name = It's ours`,
    `project-name = "\${ }, $ and {x}"`,
    'data-dir = "/var/~/klatch"',
    `${GATE} "gate token" }`,
    `${PASSWORD} = ""`,
    `${PASSWORD} = "x"`,
    `project-name = "'"`,
  ])('what is meant as it is written is none: %s', (line) => {
    expect(warned(line)).toEqual([]);
  });

  test('an included file that is required is an error', () => {
    expect(() => warned('include required("none.conf")')).toThrow(/there is no such file, and it is required/);
  });
});
