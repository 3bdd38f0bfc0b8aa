import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { renderConfigTemplate } from '../../scripts/config-template.ts';
import { renderConfiguration } from '../../scripts/docs.ts';
import { readReference } from '../../scripts/reference-document.ts';
import { listAssets, readAsset } from '../../src/assets.ts';
import { valueRuleText } from '../../src/config/value-types.ts';
import { scanLines } from '../../src/config/line-scanner.ts';
import { settingEntries } from '../../src/config/schema.ts';
import library from 'web-push';
import { createAppleKey, createServiceAccount } from '../push/keys.ts';
import { Folder, SECRET } from './folder.ts';
import { load } from './load.ts';

const reference = readAsset('config/reference.conf');
const { keys } = readReference(reference);
const template = readAsset('etc/klatch/server.conf.template');
const DB_PASSWORD = 'swordfish';

describe('reference.conf', () => {
  test('has exactly the keys of the table, in sections of the same order', () => {
    expect(keys.map(({ key }) => key).sort()).toEqual(
      settingEntries()
        .map(([key]) => key)
        .sort(),
    );
  });

  test('gives a default to those that need one and to no others', () => {
    const defaultValue = keys.filter((key) => key.defaultValue !== null).map(({ key }) => key);
    const needed = settingEntries().filter(([, { presence }]) => presence === 'defaulted');
    expect(defaultValue.sort()).toEqual(needed.map(([key]) => key).sort());
  });

  test.each(settingEntries())('explains %s, and names its bounds as they are', (key, { kind }) => {
    const found = keys.find((each) => each.key === key)!;
    expect(found.value).toBe(valueRuleText(kind));
    expect(found.explanation.length).toBeGreaterThan(20);
    expect(found.explanation).toMatch(/[.]$/);
  });

  test('loads beneath a file that holds the required keys only, without a warning', () => {
    expect(load(`secret = ${SECRET}\nhttp.base-uri = "http://a.example"`).warnings).toEqual([]);
  });

  test('is what docs/configuration.md was made from', () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/configuration.md'), 'utf8');
    expect(page).toBe(renderConfiguration(reference));
  });
});

/** Fills the placeholders of an example, except those of files. */
function fill(text: string): string {
  return text
    .replace('<SERVER_SECRET>', SECRET)
    .replace('<BASE_URI>', 'https://chat.example.org')
    .replace('<DB_PASSWORD>', DB_PASSWORD);
}

describe('server.conf.template', () => {
  test('asks for the secret, the address and the password only', () => {
    const active = scanLines(template).filter(({ kind }) => kind === 'key');
    expect(active.map(({ keyPath: path, commentOrValue: text }) => `${path} = ${text}`)).toEqual([
      'secret = "<SERVER_SECRET>"',
      'http.base-uri = "<BASE_URI>"',
      'services.postgresql.password = "<DB_PASSWORD>"',
    ]);
  });

  test('is what reference.conf gives', () => {
    expect(template).toBe(renderConfigTemplate(reference));
  });

  test('explains a key in the first sentence about it, and shows its default or a placeholder', () => {
    const rendered = renderConfigTemplate(
      '# About the file.\n\n# Limits. More.\nlive {\n  # Maximum size (such as 1.5 MiB). More.\n  # Value: a size.\n' +
        '  size = 1 MiB\n  # The size of a heap.\n  #heap = "<HEAP_SIZE>"\n}\n# A secret: keep it.\n#secret = "<S>"\n',
    );
    expect(rendered).toContain(
      '\n# Limits.\nlive {\n  # Maximum size (such as 1.5 MiB).\n  #size = 1 MiB\n' +
        '  # The size of a heap.\n  #heap = "<HEAP_SIZE>"\n}\n# A secret: keep it.\nsecret = "<SERVER_SECRET>"\n',
    );
  });

  test('loads when it is filled, with every key switched on too', () => {
    const { config, warnings } = load(fill(template));
    expect(warnings).toEqual([]);
    expect(config.postgresql.password).toBe(DB_PASSWORD);
    using folder = new Folder();
    const vapid = library.generateVAPIDKeys();
    const all = fill(template)
      .replaceAll(/^( *)#(?=[a-z-]+ = )/gm, '$1')
      .replace(/^.*(?:server-keys|bin-dir|heap|template) = .*$/gm, '')
      .replace(/^.*(?:ca-file|location) = .*$/gm, '')
      .replace(/^ *(?:certificate|key) = .*$/gm, '')
      .replaceAll(/<APPLE_(?:KEY|TEAM)_ID>/g, 'ABCDE12345')
      .replace('<APPLE_PUSH_ENDPOINT>', 'https://apple.example.org')
      .replace('<BUNDLE_ID>', 'org.example.chat')
      .replace('<GOOGLE_PROJECT_ID>', 'klatch-test')
      .replace('<GOOGLE_PUSH_KEY>', folder.write('account.json', createServiceAccount('klatch-test').json))
      .replace('<APPLE_KEY_FILE>', folder.write('key.p8', createAppleKey().p8))
      .replace('<WEB_PUSH_PUBLIC_KEY>', vapid.publicKey)
      .replace('<WEB_PUSH_PRIVATE_KEY>', vapid.privateKey)
      .replace('<WEB_PUSH_SUBJECT>', 'mailto:klatch@example.org')
      .replace('<BUCKET>', 'klatch')
      .replace('<SMTP_FROM>', 'klatch@example.org')
      .replace('<INVITE_BASE_URI>', 'https://invite.example.org')
      .replace('<ACTIVATION_URI>', 'https://gate.example.org')
      .replaceAll(/<[A-Z_]+>/g, 'x');
    const full = load(all);
    expect(full.warnings).toEqual([]);
    const { inviteBaseUri } = config;
    const { googlePush, applePush, webPush, files } = config;
    const services = { activation: null, smtp: null, googlePush, applePush, webPush, files };
    const filled = { ...full.config, file: '', ...services, inviteBaseUri };
    expect(filled).toEqual({ ...config, file: '' });
    expect(full.config.files.s3).toMatchObject({ bucket: 'klatch', downloads: 'proxy', pathStyle: false });
    expect(full.config.applePush.keys).toMatchObject([{ bundleId: 'org.example.chat', sandbox: false }]);
    expect(full.config.webPush).toMatchObject({ vapidSubject: 'mailto:klatch@example.org' });
    expect(full.config.smtp).toMatchObject({ host: 'x', port: 587, tls: 'starttls', from: 'klatch@example.org' });
  });
});

describe('the examples', () => {
  test('the minimal one asks for three values and loads when it has them', () => {
    const text = readAsset('etc/klatch/server.conf.example-minimal');
    expect(text.match(/^[^#\n].*"<[A-Z_]+>"$/gm)).toHaveLength(3);
    expect(load(fill(text))).toMatchObject({ warnings: [], config: { postgresql: { password: DB_PASSWORD } } });
  });

  test('the full one loads when it is filled', () => {
    using folder = new Folder();
    const key = folder.write('account.json', createServiceAccount().json);
    const text = fill(readAsset('etc/klatch/server.conf.example'))
      .replace('<GOOGLE_PUSH_KEY>', key)
      .replace(/modules\.security\.server-keys = \[[^\]]*\]/, '')
      .replaceAll(/<[A-Z_]+>/g, 'x');
    const { config, warnings } = load(text);
    expect(warnings).toEqual([]);
    expect(config.googlePush.keys).toEqual([{ projectId: '123456789012', key }]);
    expect(config.activation).toEqual({ uri: 'https://gate.example.org', authToken: 'x' });
    expect(config.publicEndpoints).toHaveLength(2);
  });

  test('are all there are', () => {
    expect(listAssets('etc/klatch')).toEqual([
      'server.conf.example',
      'server.conf.example-minimal',
      'server.conf.template',
    ]);
  });
});
