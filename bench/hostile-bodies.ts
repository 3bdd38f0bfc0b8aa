import { gzipSync } from 'node:zlib';

/** Kinds of bodies that cost a server more than their sender. Each kind is a column of the table. */
export const attacks = ['largest', 'deepest', 'most keys', 'most parts', 'most compressed'] as const;
export type Attack = (typeof attacks)[number];

/** A body with its headers. */
export interface HostileBody {
  readonly attack: Attack;
  readonly what: string;
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

const MIB = 1_024 * 1_024;
const JSON_TYPE = { 'content-type': 'application/json' };
const MULTIPART = { 'content-type': 'multipart/form-data; boundary=B' };
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;
const keys = (count: number): string => Array.from({ length: count }, (_, n) => `"k${n}":1`).join();
const part = (name: string, value: string): string =>
  `--B\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;

/** Hostile JSON texts with their kinds. Some requests accept them; for others they exceed the limits. */
function texts(field: string): [Attack, string, string][] {
  const filled = (bytes: number): string => `{"${field}":"${'a'.repeat(bytes - field.length - 7)}"}`;
  return [
    ['largest', '1 MiB', filled(MIB)],
    ['largest', '64 KiB', filled(65_536)],
    ['largest', '16 KiB', filled(16_384)],
    ['deepest', '524,000', `{"text":"x","a":${nested(524_000)}}`],
    ['deepest', '60 levels', `{"text":"x","a":${nested(60)}}`],
    ['most keys', '80,000 keys', `{"text":"x",${keys(80_000)}}`],
    ['most keys', '24,000 keys', `{"text":"x",${keys(24_000)}}`],
    ['most keys', '1,990 keys', `{"text":"x",${keys(1_990)}}`],
    ['most keys', '490 keys', `{"text":"x",${keys(490)}}`],
    ['most keys', '45 keys', `{"text":"x",${keys(45)}}`],
    ['most keys', '59,000 objects', `{"text":"x","a":[${'{},'.repeat(29_000)}{}]}`],
    [
      'most keys',
      '24,000 shapes',
      `{"text":"x","a":[${Array.from({ length: 12_000 }, (_, n) => `{"k${n}":1}`).join()}]}`,
    ],
  ];
}

/** The hostile bodies for an operation, or for a request about a hook. */
export function jsonBodies(field = 'text'): HostileBody[] {
  const plain = texts(field).map(([attack, what, text]) => ({
    attack,
    what,
    body: Buffer.from(text),
    headers: JSON_TYPE,
  }));
  const packed = texts(field)
    .filter(([attack, what]) => attack === 'deepest' || what === '1 MiB' || what === '24,000 keys')
    .map(([, what, text]) => ({
      attack: 'most compressed' as const,
      what,
      body: gzipSync(text, { level: 9 }),
      headers: { ...JSON_TYPE, 'content-encoding': 'gzip' },
    }));
  const parts = [190, 1_000, 15_000].map((count) => ({
    attack: 'most parts' as const,
    what: `${count} parts`,
    body: Buffer.from(`${part('a', '').repeat(count)}--B--\r\n`),
    headers: MULTIPART,
  }));
  return [...plain, ...packed, ...parts];
}

/** Events of a git host, for which the server has the highest limits of all posts. */
export function gitEventBodies(): HostileBody[] {
  const headers = { ...JSON_TYPE, 'x-github-event': 'push' };
  const repository = '"repository":{"full_name":"a/b"}';
  const commits = Array.from({ length: 20_000 }, (_, n) => `{"id":"${n}","message":"Fix ${n}","url":"https://x/${n}"}`);
  const events: [Attack, string, string][] = [
    ['largest', 'a text of 4 MiB', `{${repository},"ref":"${'a'.repeat(4 * MIB - 200)}"}`],
    ['most keys', '20,000 commits', `{${repository},"ref":"refs/heads/main","commits":[${commits.join()}]}`],
    ['most keys', '239,000 values', `{${repository},"a":[${'1,'.repeat(238_000)}1]}`],
    ['deepest', '60 levels', `{${repository},"a":${nested(60)},"b":"${'a'.repeat(2 * MIB)}"}`],
  ];
  return events.map(([attack, what, text]) => ({ attack, what, body: Buffer.from(text), headers }));
}

/** The hostile bodies as forms and as plain text, for posts. */
export function formBodies(): HostileBody[] {
  const fields = texts('text').filter(([, , text]) => text.length < MIB - 200);
  const multipart = fields.map(([attack, what, text]) => ({
    attack,
    what: `${what} in a part`,
    body: Buffer.from(`${part('payload', text)}--B--\r\n`),
    headers: MULTIPART,
  }));
  const escaped: [string, string][] = [
    ['plus signs', `payload=${'+'.repeat(MIB - 10)}`],
    ['escapes', `payload=${'%61'.repeat(349_000)}`],
    ['fields', `text=x&${'a&'.repeat(520_000)}`],
  ];
  const headers = 'x: y\r\n'.repeat(150);
  const tricks: [string, string, string][] = [
    ['an escaped boundary', '\\x', 'x'],
    ['a boundary in another parameter', '"; a="; boundary=zzz"; boundary="x', 'x'],
  ];
  return [
    ...multipart,
    ...escaped.map(([what, text]) => ({ attack: 'largest' as const, what, body: Buffer.from(text), headers: FORM })),
    {
      attack: 'most parts',
      what: '1,000 parts of 150 headers',
      body: Buffer.from(`${part('a', '').replace('\r\n\r\n', `\r\n${headers}\r\n`).repeat(900)}--B--\r\n`),
      headers: MULTIPART,
    },
    ...tricks.map(([what, boundary, real]) => {
      const body = gzipSync(`${`--${real}${part('a', '').slice(3)}`.repeat(17_000)}--${real}--\r\n`, { level: 9 });
      const type = `multipart/form-data; boundary="${boundary}"`;
      return {
        attack: 'most parts' as const,
        what,
        body,
        headers: { 'content-type': type, 'content-encoding': 'gzip' },
      };
    }),
    {
      attack: 'largest',
      what: '1 MiB of white space as text',
      body: Buffer.alloc(MIB, ' '),
      headers: { 'content-type': 'text/plain' },
    },
  ];
}

/** Frames of a live connection for a method, with hostile parameters. */
export function frames(method: string): { readonly attack: Attack; readonly what: string; readonly text: string }[] {
  const known = `{"since":{${Array.from({ length: 20_000 }, (_, n) => `"${n + 1}":1`).join()}}}`;
  const wrong = `{"since":{${keys(20_000)}}}`;
  const all: [Attack, string, string][] = [
    ...texts('x'),
    ['most keys', '20,000 known', known],
    ['most keys', '20,000 wrong', wrong],
  ];
  return all
    .map(([attack, what, params]) => ({
      attack,
      what,
      text: `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`,
    }))
    .filter(({ text }) => text.length <= MIB);
}
