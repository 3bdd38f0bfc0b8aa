import { describe, expect, test } from '@jest/globals';
import { chmodSync, mkdirSync, readFileSync, readdirSync, readlinkSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { writeConfig, writeNewFile } from '../../src/config/durable-file.ts';
import { Folder } from './folder.ts';

const modeOf = (path: string): number => statSync(path).mode & 0o777;

describe('writing the configuration', () => {
  test('makes a file that its owner can write and its group can read, whatever the umask', () => {
    using folder = new Folder();
    const path = join(folder.path, 'server.conf');
    const umask = process.umask(0o077);
    try {
      writeConfig(path, 'a = 1\n');
    } finally {
      process.umask(umask);
    }
    expect(readFileSync(path, 'utf8')).toBe('a = 1\n');
    expect(modeOf(path)).toBe(0o640);
    expect(readdirSync(folder.path)).toEqual(['server.conf']);
  });

  test('replaces a file as a whole, and never opens it wider', () => {
    using folder = new Folder();
    const closed = folder.write('closed.conf', 'old', 0o600);
    const open = folder.write('open.conf', 'old', 0o666);
    const before = statSync(closed).ino;
    writeConfig(closed, 'new');
    writeConfig(open, 'new');
    expect([readFileSync(closed, 'utf8'), modeOf(closed), modeOf(open)]).toEqual(['new', 0o600, 0o640]);
    expect(statSync(closed).ino).not.toBe(before);
  });

  test('writes through a symbolic link', () => {
    using folder = new Folder();
    const target = folder.write('real/server.conf', 'old');
    symlinkSync(target, join(folder.path, 'server.conf'));
    writeConfig(join(folder.path, 'server.conf'), 'new');
    expect(readFileSync(target, 'utf8')).toBe('new');
    expect(readlinkSync(join(folder.path, 'server.conf'))).toBe(target);
  });

  test('leaves nothing behind where it fails', () => {
    using folder = new Folder();
    mkdirSync(join(folder.path, 'server.conf/x'), { recursive: true });
    expect(() => writeConfig(join(folder.path, 'server.conf'), 'new')).toThrow(/EISDIR|ENOTEMPTY|EEXIST|EPERM/);
    expect(readdirSync(folder.path)).toEqual(['server.conf']);
    expect(() => writeConfig(join(folder.path, 'missing/server.conf'), 'new')).toThrow(/ENOENT/);
  });

  const asRoot = process.getuid?.() === 0 ? test : test.skip;

  asRoot('keeps the owner of the old file, or sets the one that is asked for', () => {
    using folder = new Folder();
    const path = folder.write('server.conf', 'old');
    writeConfig(path, 'new', { owner: { uid: 1234, gid: 4321 } });
    writeConfig(path, 'newer');
    expect(statSync(path)).toMatchObject({ uid: 1234, gid: 4321 });
    expect(readFileSync(path, 'utf8')).toBe('newer');
  });
});

test('a new file is never written over another one', () => {
  using folder = new Folder();
  const path = folder.write('key.pem', 'old');
  chmodSync(path, 0o600);
  expect(() => writeNewFile(path, 'new', { mode: 0o600 })).toThrow(/EEXIST/);
  expect(readFileSync(path, 'utf8')).toBe('old');
});
