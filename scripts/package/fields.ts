import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './paths.ts';

/**
 * Returns the text of a file of the source tree, with each `@NAME@` replaced by its value. Throws for a name without a
 * value, so that none remains in a package.
 */
export function fill(file: string, values: Readonly<Record<string, string>>): string {
  return readFileSync(join(ROOT, file), 'utf8').replace(/@([A-Z][A-Z_]*)@/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`${file}: nothing stands for @${name}@`);
    return value;
  });
}

/** Lines as the continuation of a field in a Debian control file: each after a blank, an empty one as a dot. */
export function continued(lines: readonly string[]): string {
  return lines.map((line) => (line === '' ? ' .' : ` ${line}`)).join('\n');
}
