import { beforeAll, beforeEach, afterEach, describe, expect, test } from '@jest/globals';
import { generateKeyPairSync } from 'node:crypto';
import webPush from 'web-push';
import { exportConfiguration } from '../../src/config/export.ts';
import { loadConfig, type LoadedConfig } from '../../src/config/load.ts';
import { ConfigError } from '../../src/config/problem.ts';
import { createAppleKey, createServiceAccount, createTls, type TestAccount } from '../push/keys.ts';
import { Folder, MINIMAL } from './folder.ts';
import { withoutPositions } from './load.ts';

const pkcs8 = { type: 'pkcs8', format: 'pem' } as const;
const SECRET_WORD = 'hunter2';
let account: TestAccount;
let p8: string;
let folder: Folder;

beforeAll(() => {
  account = createServiceAccount('klatch-test');
  ({ p8 } = createAppleKey());
});
beforeEach(() => {
  folder = new Folder();
});
afterEach(() => folder[Symbol.dispose]());

const load = (text: string): LoadedConfig => {
  return loadConfig(folder.write('server.conf', `${MINIMAL}${text}\n`), { env: {} });
};

/** The error message for a refused configuration, without the folder. */
function said(text: string): string {
  try {
    load(text);
  } catch (error) {
    if (error instanceof ConfigError) return withoutPositions(error.message, folder.path);
    throw error;
  }
  throw new Error('It loaded.');
}

const warned = (text: string): string[] => load(text).warnings.map((line) => withoutPositions(line, folder.path));
const google = (key: string, project = 'klatch-test'): string =>
  `services.google.push.keys = [{\n  project-id = "${project}"\n  key = ${key} }]`;
const changed = (change: object): string => JSON.stringify({ ...JSON.parse(account.json), ...change });
const at = 'server.conf:5: services.google.push.keys[0].key: ';
const EXPECTED = 'a service account of the project (Firebase: project settings, service accounts, new private key)';

describe("Google's key", () => {
  test('is a path from the folder of the file it stands in, or JSON on one line or many', () => {
    const file = folder.write('keys/account.json', account.json);
    expect(load(google('keys/account.json')).config.googlePush.keys[0]!.key).toBe(file);
    folder.write('sub/push.conf', google('"../keys/account.json"'));
    expect(load('include "sub/push.conf"').config.googlePush.keys[0]!.key).toBe(file);
    expect(load(google(`"""\n${account.json}\n"""`)).config.googlePush.keys[0]!.key).toBe(account.json);
    expect(load(google(JSON.stringify(account.json))).warnings).toEqual([]);
  });

  test('may be of a project by its number, which its file does not name', () => {
    folder.write('account.json', account.json);
    expect(load(google('account.json', '123456789012')).warnings).toEqual([]);
  });

  test.each([
    ['AIzaSyD-hunter2-abcdefghijklmnopqrstuvw', /it is a server key of the legacy API, which Google switched off/],
    ['"AAAAhunter2:APA91bExample"', /it is a server key of the legacy API, which Google switched off in 2024/],
    ['"""-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----"""', /it is a private key alone/],
    ['""', /it is empty$/],
    ['"hunter2\\u0007"', /it holds a control character$/],
  ])('is refused in a sentence where it is none: %s', (key, sentence) => {
    const message = said(google(key));
    expect(message).toMatch(sentence);
    expect(message.startsWith(`${at}expected the path of a service account file, or its JSON`)).toBe(true);
    expect(message).not.toContain(SECRET_WORD);
  });

  test('is refused at its line where its file cannot be used', () => {
    expect(said(google('none.json'))).toBe(`${at}none.json does not exist`);
    expect(said(google(SECRET_WORD))).toBe(`${at}the file that it names does not exist`);
    folder.write('folder.json/x', '');
    expect(said(google('folder.json'))).toBe(`${at}folder.json is not a file`);
    folder.write('large.json', 'x'.repeat(70_000));
    expect(said(google('large.json'))).toBe(`${at}large.json is too large for a key`);
    folder.write('text.json', SECRET_WORD);
    expect(said(google('text.json'))).toBe(`${at}text.json is not JSON: expected ${EXPECTED}`);
    expect(said(google(`"{ ${SECRET_WORD}"`))).toBe(`${at}the JSON is damaged: expected ${EXPECTED}`);
  });

  test.each<[object, string]>([
    [{ type: 'authorized_user' }, `is not a service account; expected ${EXPECTED}`],
    [{ project_info: {} }, `is the configuration of an app; expected ${EXPECTED}`],
    [{ project_id: 'klatch-other' }, 'is of klatch-other, not of klatch-test'],
    [{ project_id: 7 }, 'is of another project, not of klatch-test'],
    [{ client_email: undefined }, 'lacks its client_email'],
    [{ private_key: undefined }, 'lacks its private_key'],
  ])('is refused where its JSON is another one: %j', (change, sentence) => {
    folder.write('account.json', changed(change));
    expect(said(google('account.json'))).toBe(`${at}account.json ${sentence}`);
  });

  test('is refused where its private key is none', () => {
    const { privateKey } = generateKeyPairSync('ed25519');
    folder.write('account.json', changed({ private_key: privateKey.export(pkcs8) }));
    expect(said(google('account.json'))).toBe(
      `${at}the private_key of account.json is of the type ed25519, expected RSA`,
    );
    folder.write('account.json', changed({ private_key: SECRET_WORD }));
    expect(said(google('account.json'))).toBe(
      `${at}the private_key of account.json is no private key in PEM, or a damaged one`,
    );
  });

  test('is one for a project, and for nobody else to read', () => {
    folder.write('account.json', account.json, 0o644);
    expect(warned(google('account.json'))).toEqual([
      `${at}account.json can be read by every user of this machine: chmod o-r`,
    ]);
    const pair = '{ project-id = klatch-test, key = account.json }';
    expect(said(`services.google.push.keys = [${pair},\n${pair}]`)).toBe(
      'server.conf:4: services.google.push.keys[1].key: there is a key of klatch-test already',
    );
  });
});

const apple = (path: string, more = ''): string =>
  `services.apple.push { ${more}\n  keys = [{ key-id = KEY1234567, team-id = TEAM123456, bundle-id = org.example.chat\n path = "${path}" }] }`;

describe("Apple's key", () => {
  const here = 'server.conf:5: services.apple.push.keys[0].path: ';

  test('is a .p8 file', () => {
    folder.write('key.p8', p8);
    expect(load(apple('key.p8')).warnings).toEqual([]);
    folder.write('key.p8', p8, 0o644);
    expect(warned(apple('key.p8'))).toEqual([`${here}key.p8 can be read by every user of this machine: chmod o-r`]);
  });

  test('is refused at its line where it is none', () => {
    expect(said(apple('none.p8'))).toBe(`${here}none.p8 does not exist`);
    const about = (content: string): string => {
      folder.write('key.p8', content);
      return said(apple('key.p8'));
    };
    expect(about(SECRET_WORD)).toBe(`${here}key.p8 is not a .p8 file: it begins with "BEGIN PRIVATE KEY"`);
    expect(about(p8.replace(/\n.{20}/, '\nhunter2'))).toBe(`${here}key.p8 is no private key in PEM, or a damaged one`);
    const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey;
    expect(about(p384.export(pkcs8) as string)).toBe(
      `${here}key.p8 holds a key of the type ec secp384r1, expected ec prime256v1 (P-256)`,
    );
    const locked = p384.export({ ...pkcs8, cipher: 'aes-256-cbc', passphrase: 'x' }) as string;
    expect(about(locked)).toBe(`${here}key.p8 is locked with a passphrase, which nobody could type at a start`);
  });

  test('comes with an authority that is one', () => {
    folder.write('key.p8', p8);
    folder.write('ca.pem', createTls().authority);
    expect(load(apple('key.p8', 'ca-file = ca.pem')).warnings).toEqual([]);
    const about = 'server.conf:3: services.apple.push.ca-file: key.p8 is no certificate in PEM';
    expect(said(apple('key.p8', 'ca-file = key.p8'))).toBe(about);
  });

  test('goes over an encrypted connection', () => {
    folder.write('key.p8', p8);
    expect(said(apple('key.p8', 'endpoint = "http://relay.example"'))).toContain(
      'server.conf:3: services.apple.push.endpoint: expected an absolute https:// address',
    );
  });
});

describe('TLS to the database', () => {
  const database = (lines: string): string => `services.postgresql {\n${lines} }`;

  beforeEach(() => {
    const tls = createTls();
    folder.write('ca.pem', tls.authority);
    folder.write('cert.pem', tls.cert);
    folder.write('key.pem', tls.key);
  });

  test('comes with an authority, a certificate and its key', () => {
    const text = database('tls = verify-full\nca-file = ca.pem\ncertificate = cert.pem\nkey = key.pem');
    const { config, warnings } = load(text);
    expect(warnings).toEqual([]);
    const at = (name: string): string => `${folder.path}/${name}`;
    const files = { databaseCaFile: at('ca.pem'), certificate: at('cert.pem'), key: at('key.pem') };
    expect(config.postgresql.tls).toEqual({ mode: 'verify-full', ...files });
    expect(load('').config.postgresql.tls).toBeNull();
  });

  test('is refused with files that are not what they should be', () => {
    const here = 'server.conf:4: services.postgresql.';
    expect(said(database('ca-file = key.pem'))).toBe(`${here}ca-file: key.pem is no certificate in PEM`);
    expect(said(database('certificate = cert.pem'))).toBe(
      `${here}certificate: is of no use without services.postgresql.key: set it too, or none of them`,
    );
    const swapped = database('certificate = key.pem\nkey = cert.pem');
    expect(said(swapped)).toBe(`${here}certificate: key.pem: it is no certificate in PEM`);
    folder.write('other.pem', createTls().key);
    const foreign = database('certificate = cert.pem\nkey = other.pem');
    expect(said(foreign)).toBe('server.conf:5: services.postgresql.key: other.pem: it does not belong to cert.pem');
  });

  test('warns of files that are not looked at', () => {
    expect(warned(database('tls = require\nca-file = ca.pem'))).toEqual([
      'server.conf:5: services.postgresql.ca-file: is not used: only tls = verify-full looks at the certificate of the server',
    ]);
    expect(warned(database('certificate = cert.pem\nkey = key.pem'))).toEqual([
      'server.conf:4: services.postgresql.certificate: is not used: services.postgresql.tls is disable',
    ]);
  });
});

describe('the keys of Web Push', () => {
  const { publicKey, privateKey } = webPush.generateVAPIDKeys();
  const web = (keys: object): string =>
    `services.web-push {\n${Object.entries(keys)
      .map(([name, value]) => `${name} = "${value}"`)
      .join('\n')} }`;
  const subject = 'mailto:klatch@example.org';

  test('are a pair', () => {
    expect(load(web({ public: publicKey, private: privateKey, subject })).warnings).toEqual([]);
    const other = webPush.generateVAPIDKeys();
    const sentence = 'does not belong to services.web-push.public: "klatch setup" makes a pair';
    const here = 'server.conf:5: services.web-push.private: ';
    for (const wrong of [other.privateKey, 'A'.repeat(43), '_'.repeat(42) + '8']) {
      expect(said(web({ public: publicKey, private: wrong, subject }))).toBe(`${here}${sentence}`);
    }
    expect(said(web({ public: 'p'.repeat(87), private: privateKey, subject }))).toBe(`${here}${sentence}`);
  });

  test('are there all three, or none', () => {
    expect(said(web({ public: publicKey, private: privateKey }))).toBe(
      'server.conf:4: services.web-push.public: is of no use without services.web-push.subject: set it too, or none of them',
    );
    expect(said(web({ subject }))).toBe(
      'server.conf:4: services.web-push.subject: is of no use without services.web-push.public and services.web-push.private: set both too, or none of them',
    );
  });
});

describe('a configuration that is kept elsewhere', () => {
  const text = [
    'services.google.push.keys = [{ project-id = klatch-test, key = "account.json" }]',
    'services.apple.push.ca-file = ca.pem',
    'services.apple.push.keys = [',
    '  { key-id = KEY1234567, team-id = TEAM123456, bundle-id = org.example.chat, path = key.p8 }',
    '  { key-id = KEY1234567, team-id = TEAM123456, bundle-id = org.example.work, path = key.p8 }',
    ']',
    'endpoints = [',
    '  { type = websocket, interface = "127.0.0.1", port = 9443, certificate = tls/chain.pem, key = tls/key.pem }',
    '  { type = tcp, interface = "127.0.0.1", port = 9444, certificate = tls/both.pem, key = tls/both.pem }',
    ']',
    'services.smtp { host = mail.example.org, from = "klatch@example.org", template = letter.txt }',
    'services.postgresql { tls = verify-full, ca-file = db/ca.pem, certificate = db/cert.pem, key = db/key.pem }',
  ].join('\n');
  const names = (files: readonly { readonly path: string }[]): string[] =>
    files.map(({ path }) => path.replace(`${folder.path}/`, ''));

  beforeEach(() => {
    folder.write('account.json', account.json);
    folder.write('key.p8', p8);
    const tls = createTls();
    folder.write('ca.pem', tls.authority);
    folder.write('tls/chain.pem', tls.cert);
    folder.write('tls/key.pem', tls.key);
    folder.write('tls/both.pem', `${tls.cert}${tls.key}`);
    folder.write('db/ca.pem', tls.authority);
    folder.write('db/cert.pem', tls.cert);
    folder.write('db/key.pem', tls.key);
    folder.write('letter.txt', 'Hello\n\n{code}\n');
  });

  test('has the files that it names with it, each once', () => {
    const { files } = exportConfiguration(load(text), { env: {}, secrets: true });
    expect(files.map(({ kind }, index) => [names(files)[index], kind])).toEqual([
      ['server.conf', 'configuration'],
      ['letter.txt', 'configuration'],
      ['tls/chain.pem', 'public-key'],
      // A file that contains both certificate and key is secret.
      ['tls/both.pem', 'private-key'],
      ['ca.pem', 'public-key'],
      ['db/ca.pem', 'public-key'],
      ['db/cert.pem', 'public-key'],
      ['tls/key.pem', 'private-key'],
      ['db/key.pem', 'private-key'],
      ['account.json', 'private-key'],
      ['key.p8', 'private-key'],
    ]);
  });

  test('has nothing secret with it where that is not wanted', () => {
    const { files, missing } = exportConfiguration(load(text), { env: {}, secrets: false });
    expect(names(files)).toEqual(['server.conf', 'letter.txt', 'tls/chain.pem', 'ca.pem', 'db/ca.pem', 'db/cert.pem']);
    expect(missing.map((path) => path.replace(`${folder.path}/`, ''))).toEqual([
      'secret',
      'services.google.push.keys',
      'tls/both.pem',
      'tls/key.pem',
      'db/key.pem',
      'account.json',
      'key.p8',
    ]);
    const written = files[0]!.content.toString('utf8');
    expect(written).toContain('"path" = "key.p8"');
    expect(written).toContain('"certificate" = "tls/chain.pem"');
    expect(written).toContain('services.smtp.template = "letter.txt"');
    expect(written).toContain('"key" = "<KEYS>"');
    expect(written).not.toContain('account.json');
  });
});

describe('the stores of files', () => {
  const s3 = 'services.aws.s3 { default-bucket = klatch, access-key = a, secret-key = hunter2 }';

  test('may be a folder or a bucket; a folder beside a bucket is not used', () => {
    expect(load('services.file-storage.location = files').warnings).toEqual([]);
    expect(load(s3).warnings).toEqual([]);
    expect(warned(`${s3}\nservices.file-storage.location = files`)).toEqual([
      'server.conf:4: services.file-storage.location: is not used: files are kept in the bucket of services.aws.s3',
    ]);
  });

  test('are no bucket that lacks its keys: files would go where nobody looks for them', () => {
    expect(said('services.aws.s3.default-bucket = klatch')).toBe(
      'server.conf:3: services.aws.s3.default-bucket: is of no use without services.aws.s3.access-key and services.aws.s3.secret-key: set both too, or none of them',
    );
    const message = said('services.aws.s3 { default-bucket = klatch, secret-key = hunter2 }');
    expect(message).toContain('is of no use without services.aws.s3.access-key: set it too, or none of them');
    expect(message).not.toContain(SECRET_WORD);
  });
});
