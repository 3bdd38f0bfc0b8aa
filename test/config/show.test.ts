import { describe, expect, test } from '@jest/globals';
import { join } from 'node:path';
import { loadConfig } from '../../src/config/load.ts';
import type { ValueType } from '../../src/config/value-types.ts';
import { CONFIG_SCHEMA, settingEntries } from '../../src/config/schema.ts';
import { loadHocon } from '../../packages/hocon/src/index.ts';
import { ensureServerKeys } from '../../src/config/keys/server-key-files.ts';
import { describeConfig, formatConfig } from '../../src/config/show.ts';
import { createServiceAccount } from '../push/keys.ts';
import { Folder, SECRET } from './folder.ts';

const TEXT = `secret = "${SECRET}"
http { base-uri = "https://a.example/", port = \${?PORT} }
services.postgresql { password = "swordfish", embedded = on }
services.klatch-activation { uri = "https://gate.example", auth-token = swordfish }
services.google.push.keys = [{ project-id = 7, key = swordfish, extra = swordfish }]
delivery.retry = [1s, 2s]
data-dir = data
unknown = swordfish
modules.security.server-keys = [{ public = server-key.public.pem, private = "./server-key.private.pem" }]
`;

function shown(folder: Folder) {
  ensureServerKeys(folder.path);
  folder.write('swordfish', createServiceAccount().json);
  const file = folder.write('server.conf', TEXT);
  return describeConfig(loadConfig(file, { env: { PORT: '8080' } }).root);
}

describe('the effective configuration', () => {
  test('has every key once, with its value and where it comes from', () => {
    using folder = new Folder();
    const settings = shown(folder);
    const at = (line: number): string => `${folder.path}/server.conf:${line}`;
    expect(settings.map(({ key }) => key)).toEqual(Object.keys(CONFIG_SCHEMA));
    const find = (name: string) => settings.find(({ key }) => key === name);
    expect(find('http.base-uri')).toEqual({ key: 'http.base-uri', value: 'https://a.example/', source: at(2) });
    expect(find('http.port')).toEqual({ key: 'http.port', value: '8080', source: at(2) });
    expect(find('http.interface')).toEqual({ key: 'http.interface', value: '127.0.0.1', source: 'default' });
    expect(find('services.postgresql.bin-dir')).toEqual({
      key: 'services.postgresql.bin-dir',
      value: null,
      source: 'default',
    });
    expect(find('services.postgresql.host')).toMatchObject({ value: '127.0.0.1', source: 'default' });
    expect(find('delivery.retry')).toEqual({ key: 'delivery.retry', value: ['1s', '2s'], source: at(6) });
    expect(find('data-dir')).toEqual({ key: 'data-dir', value: join(folder.path, 'data'), source: at(7) });
    expect(find('services.google.push.keys')?.value).toEqual([{ 'project-id': 7, key: '(hidden)' }]);
    expect(find('modules.security.server-keys')?.value).toEqual([
      { public: join(folder.path, 'server-key.public.pem'), private: join(folder.path, 'server-key.private.pem') },
    ]);
  });

  test('shows no secret, as text or as JSON', () => {
    using folder = new Folder();
    const settings = shown(folder);
    for (const output of [formatConfig(settings), JSON.stringify(settings)]) {
      expect(output).not.toContain('swordfish');
      expect(output).not.toContain(SECRET);
    }
    expect(settings.filter(({ value }) => value === '(hidden)').map(({ key }) => key)).toEqual([
      'secret',
      'services.postgresql.password',
      'services.klatch-activation.auth-token',
    ]);
  });

  /** The names of secret settings, written by hand: the list must not follow from the code that hides secrets. */
  const SECRETS = [
    'secret',
    'services.postgresql.password',
    'services.klatch-activation.auth-token',
    'services.smtp.password',
    'services.google.push.keys[].key',
    'services.web-push.private',
    'services.aws.s3.secret-key',
  ];
  /** Settings for the path of a file with a key. The path is shown, and a key in its place is refused. */
  const KEY_FILES = ['endpoints[].key', 'services.apple.push.keys[].path', 'modules.security.server-keys[].private'];

  test('hides every secret that the schema knows, with a key for each name that sounds like one', () => {
    const leaves = settingEntries().flatMap(([key, { kind }]): [string, ValueType<unknown>][] => {
      const fields = kind.items?.fields ?? null;
      if (fields === null) return [[key, kind]];
      return Object.entries(fields).map(([name, field]) => [`${key}[].${name}`, field.kind]);
    });
    const sounding = leaves.filter(
      ([key, { isPath: path }]) => !path && /(?:^|[.-])(?:secret|password|private|token|key)$/.test(key),
    );
    expect(leaves.filter(([, { hidden }]) => hidden).map(([key]) => key)).toEqual(SECRETS);
    expect(sounding.map(([key]) => key).filter((key) => !SECRETS.includes(key))).toEqual([
      'services.aws.s3.access-key',
    ]);
    const kinds = new Map(leaves);
    for (const key of [...SECRETS, ...KEY_FILES]) expect(kinds.get(key)?.quotableInMessages).toBe(false);
  });

  test('shows none of them, whatever they hold', () => {
    const lines = SECRETS.map((key) =>
      key.includes('[]') ? `${key.replace('[].', ' = [{ ')} = swordfish }]` : `${key} = swordfish`,
    );
    const settings = describeConfig(loadHocon([{ name: 'server.conf', text: lines.join('\n') }], { env: {} }));
    expect(settings.filter(({ value }) => value !== null)).toHaveLength(SECRETS.length);
    expect(JSON.stringify(settings) + formatConfig(settings)).not.toContain('swordfish');
  });

  test('is one line a key as text', () => {
    using folder = new Folder();
    const lines = formatConfig(shown(folder)).replaceAll(`${folder.path}/`, '').split('\n');
    expect(lines).toHaveLength(Object.keys(CONFIG_SCHEMA).length + 1);
    const words = lines.map((line) => line.replace(/ {2,}/g, ' '));
    expect(words).toContain('secret = (hidden) # server.conf:1');
    expect(words).toContain('services.postgresql.bin-dir = (not set) # default');
    expect(words).toContain('services.postgresql.embedded = "on" # server.conf:3');
    expect(words).toContain('delivery.retry = ["1s", "2s"] # server.conf:6');
    expect(words).toContain('services.google.push.keys = [{ project-id = 7, key = (hidden) }] # server.conf:5');
  });
});
