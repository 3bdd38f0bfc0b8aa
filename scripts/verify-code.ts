import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const PAGE = join(import.meta.dirname, '../docs/reverse-webhooks.md');

/** The recipes that verify a delivery, by the language that the browser shows. */
const RECIPES = {
  'Node.js': 'node-v1',
  Python: 'python-v1',
  PHP: 'php-v1',
  Ruby: 'ruby-v1',
  'Shell with OpenSSL': 'openssl-v1',
} as const;

/**
 * Renders the module with the lines that verify a delivery. The browser shows the lines of the documents, which
 * `test/foreign/receivers/verify-recipes.test.ts` runs.
 */
export function renderVerifyCode(): string {
  const page = readFileSync(PAGE, 'utf8');
  const entries = Object.entries(RECIPES).map(([language, name]) => {
    const [, code] = new RegExp(`<!-- recipe: ${name} -->\\n+\`\`\`\\w+\\n([^]*?)\\n\`\`\``).exec(page) ?? [];
    if (code === undefined) throw new Error(`docs/reverse-webhooks.md has no recipe ${name}`);
    return `  ${JSON.stringify(language)}: ${JSON.stringify(code)},`;
  });
  return [
    '// Made by scripts/docs.ts from docs/reverse-webhooks.md. Do not edit.',
    '/** The lines that verify a delivery, by language. */',
    'export const VERIFY_CODE: Readonly<Record<string, string>> = {',
    ...entries,
    '};',
    '',
  ].join('\n');
}
