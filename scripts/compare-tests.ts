/**
 * Shows that no test was lost: `node scripts/compare-tests.ts before.json after.json... [--renames=file.json]`. Each
 * file is jest's output of `--json --outputFile`. `renames` is a JSON object from old names to new ones, null for a
 * test that was removed on purpose. The script compares names without their files, and counts repeated ones. It exits 1
 * when `after` lacks a test of `before`.
 *
 * Jest lists all names in two minutes, without running a test: `-t 'no test has this name'`. `renamed-tests.json` has
 * the renames since 9cdc6ba.
 */
import { readFileSync } from 'node:fs';

interface Result {
  readonly testResults: readonly { readonly assertionResults: readonly { readonly fullName: string }[] }[];
}

type Renames = Readonly<Record<string, string | null>>;

function namesIn(file: string): string[] {
  const { testResults } = JSON.parse(readFileSync(file, 'utf8')) as Result;
  return testResults.flatMap(({ assertionResults }) => assertionResults.map(({ fullName }) => fullName));
}

/** The names of `before` that `after` lacks, each as often as it is missing. */
export function missingTests(before: readonly string[], after: readonly string[], renames: Renames = {}): string[] {
  const left = new Map<string, number>();
  for (const name of after) left.set(name, (left.get(name) ?? 0) + 1);
  return before.filter((old) => {
    const name = Object.hasOwn(renames, old) ? renames[old]! : old;
    if (name === null) return false;
    const count = left.get(name) ?? 0;
    if (count > 0) left.set(name, count - 1);
    return count === 0;
  });
}

if (import.meta.main) {
  const files = process.argv.slice(2).filter((word) => !word.startsWith('--'));
  const renames = process.argv.find((word) => word.startsWith('--renames='))?.slice('--renames='.length);
  const [first, ...others] = files;
  if (first === undefined || others.length === 0) throw new Error('usage: compare-tests.ts before.json after.json...');
  const before = namesIn(first);
  const after = others.flatMap(namesIn);
  const known = renames === undefined ? {} : (JSON.parse(readFileSync(renames, 'utf8')) as Renames);
  const missing = missingTests(before, after, known);
  for (const name of missing) console.log(`missing: ${name}`);
  console.log(`${before.length} tests before, ${after.length} after, ${missing.length} missing`);
  process.exitCode = missing.length > 0 ? 1 : 0;
}
