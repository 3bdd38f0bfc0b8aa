import { describe, expect, test } from '@jest/globals';
import type { ValueType } from '../../src/config/value-types.ts';
import { readTreeFromSources } from '../../src/config/tree.ts';
import { settingEntries } from '../../src/config/schema.ts';
import { describeConfig, formatConfig } from '../../src/config/show.ts';
import { Folder } from './folder.ts';

/** A setting without fields of its own; `name` has the form `services.google.push.keys[].key`. */
interface Leaf {
  readonly name: string;
  readonly kind: ValueType<unknown>;
}

function leavesOf(name: string, kind: ValueType<unknown>): Leaf[] {
  if (kind.items !== null) return leavesOf(`${name}[]`, kind.items);
  if (kind.fields === null) return [{ name, kind }];
  return Object.entries(kind.fields).flatMap(([field, entry]) => leavesOf(`${name}.${field}`, entry.kind));
}

const leaves = settingEntries().flatMap(([key, { kind }]) => leavesOf(key, kind));

/** Matches the endings of the names of secrets. */
const SECRETIVE = /(secret|password|token|key|private)$/;
/** Settings with such names that are not secret: these values are sent in the clear, together with their secret. */
const HARMLESS = ['services.aws.s3.access-key'];

/**
 * The settings that contain secrets, selected by their names and not by the schema. The path of a file with a secret is
 * no secret.
 */
const secrets = leaves.filter(({ name, kind }) => SECRETIVE.test(name) && !kind.isPath && !HARMLESS.includes(name));

/** The line of HOCON that gives a setting this text. */
function assignment(name: string, text: string): string {
  const [key, field] = name.split('[].') as [string, string | undefined];
  return field === undefined ? `${key} = ${text}` : `${key} = [{ ${field} = ${text} }]`;
}

describe('a key whose name says that it is secret', () => {
  test('is one of these', () => {
    expect(secrets.map(({ name }) => name).sort()).toEqual([
      'secret',
      'services.aws.s3.secret-key',
      'services.google.push.keys[].key',
      'services.klatch-activation.auth-token',
      'services.postgresql.password',
      'services.smtp.password',
      'services.web-push.private',
    ]);
  });

  test.each(secrets)('$name is shown by no listing', ({ name }) => {
    using folder = new Folder();
    const file = folder.write('server.conf', `${assignment(name, 'swordfish')}\n`);
    const settings = describeConfig(readTreeFromSources([{ path: file }], {}));
    for (const output of [formatConfig(settings), JSON.stringify(settings)]) {
      expect(output).not.toContain('swordfish');
      expect(output).toContain('(hidden)');
    }
  });

  test('and no other one is hidden: what can be shown is', () => {
    const hidden = leaves.filter(({ kind }) => kind.hidden).map(({ name }) => name);
    expect(hidden.filter((name) => !secrets.some((each) => each.name === name))).toEqual([]);
  });
});
