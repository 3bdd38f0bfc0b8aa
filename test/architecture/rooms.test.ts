import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import {
  client,
  cyclesIn,
  FOLDERS,
  importGraph,
  importsOf,
  packages,
  root,
  sourceFiles,
  src,
  web,
} from './source-graph.ts';

/**
 * The exact imports of each room of a layer from its other rooms, in an order in which no room imports a later one. A
 * room is a folder of the layer, or a file directly in it.
 */
const roomsOf: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  operations: {
    core: [],
    hooks: ['core'],
    groups: ['core', 'hooks'],
    auth: ['core', 'groups'],
    accounts: ['core', 'auth'],
    describe: ['core'],
    messages: ['core'],
    server: ['core'],
    'table.ts': ['core', 'hooks', 'groups', 'auth', 'accounts', 'messages', 'server'],
  },
  storage: {
    db: [],
    accounts: ['db'],
    embedded: ['db'],
    messages: ['db'],
    hooks: ['db', 'messages'],
    'database.ts': ['db', 'messages', 'hooks'],
    'open-database.ts': ['db', 'embedded', 'database.ts'],
    push: ['db'],
    retention: ['db', 'hooks', 'push'],
    'rotate-secret.ts': ['db'],
    files: ['db'],
    backup: ['db', 'embedded', 'messages', 'hooks', 'open-database.ts', 'retention', 'rotate-secret.ts', 'files'],
    'database-report.ts': ['db', 'messages', 'files'],
    'replication-report.ts': ['db'],
    groups: ['db', 'accounts', 'messages'],
    provision: ['db'],
  },
  client: { core: [], node: ['core'], terminal: ['core', 'node'] },
  web: {
    core: [],
    text: [],
    words: [],
    timeline: ['text', 'words'],
    conversation: ['core', 'timeline', 'words'],
    screens: ['conversation', 'core', 'text', 'timeline', 'words'],
    'main.tsx': ['core', 'screens', 'words'],
  },
  cli: {
    core: [],
    'admin-link.ts': ['core'],
    'api.ts': ['core'],
    'bash-completion.ts': [],
    'chat.ts': ['core'],
    'completion.ts': ['core', 'bash-completion.ts'],
    'config.ts': ['core'],
    data: ['core'],
    group: ['core'],
    hook: ['core', 'group'],
    health: ['core'],
    'send.ts': ['core', 'group'],
    setup: ['core'],
    'serve.ts': ['core', 'setup'],
    'user-change-commands.ts': ['core'],
    'user.ts': ['core', 'group', 'user-change-commands.ts'],
    'commands.ts': [
      'core',
      'admin-link.ts',
      'api.ts',
      'chat.ts',
      'completion.ts',
      'config.ts',
      'data',
      'group',
      'hook',
      'health',
      'send.ts',
      'setup',
      'serve.ts',
      'user.ts',
    ],
    'program.ts': ['core', 'data', 'serve.ts', 'commands.ts'],
  },
};

/** The most files that one folder may have, without those of its subfolders. */
const MAX_FILES = 30;

const folderOf = (layer: string): string => ({ client, web })[layer] ?? join(src, layer);

/** The room of a file of a layer: its folder, or the file itself. */
const roomOf = (layer: string, file: string): string => relative(folderOf(layer), file).split('/')[0]!;

describe('rooms', () => {
  test.each(Object.keys(roomsOf))('of %s import each other as they are listed, in one direction', (layer) => {
    const found = new Map<string, Set<string>>();
    for (const [file, imports] of importGraph(folderOf(layer))) {
      const room = roomOf(layer, file);
      const others = found.get(room) ?? new Set<string>();
      found.set(room, others);
      for (const target of imports) {
        if (target.startsWith(join(folderOf(layer), '/')) && roomOf(layer, target) !== room)
          others.add(roomOf(layer, target));
      }
    }
    const listed = roomsOf[layer]!;
    const actual = Object.fromEntries([...found].map(([room, others]) => [room, [...others].sort()]));
    expect(actual).toEqual(
      Object.fromEntries(Object.entries(listed).map(([room, others]) => [room, [...others].sort()])),
    );
    const order = Object.keys(listed);
    const upward = order.flatMap((room) =>
      listed[room]!.filter((other) => order.indexOf(other) > order.indexOf(room)).map((other) => `${room} -> ${other}`),
    );
    expect(upward).toEqual([]);
  });

  test.each(FOLDERS)('no folder of %s has more than 30 files', (folder) => {
    const counts = new Map<string, number>();
    for (const { parentPath } of readdirSync(join(root, folder), { withFileTypes: true, recursive: true }).filter(
      (entry) => entry.isFile(),
    )) {
      const place = relative(root, parentPath);
      counts.set(place, (counts.get(place) ?? 0) + 1);
    }
    expect([...counts].filter(([, count]) => count > MAX_FILES)).toEqual([]);
  });

  test.each(FOLDERS)('no file of %s imports itself through others', (folder) => {
    expect(cyclesIn(importGraph(join(root, folder)))).toEqual([]);
  });
});

test('every export is imported somewhere', () => {
  const used = new Set<string>();
  for (const folder of FOLDERS) {
    for (const file of sourceFiles(join(root, folder))) {
      for (const { target, names } of importsOf(file)) {
        if (names === null) used.add(target);
        else for (const name of names) used.add(`${target}:${name}`);
      }
    }
  }
  const declared = /^export (?:async )?(?:abstract )?(?:class|function\*?|const|let|type|interface) (\w+)/gm;
  const unused = [src, client, web, ...packages.values()].flatMap(sourceFiles).flatMap((file) => {
    if (used.has(file)) return [];
    const names = [...readFileSync(file, 'utf8').matchAll(declared)].map(([, name]) => name!);
    return names.filter((name) => !used.has(`${file}:${name}`)).map((name) => `${relative(root, file)}: ${name}`);
  });
  expect(unused).toEqual([]);
});
