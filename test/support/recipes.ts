import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The code block after `<!-- recipe: name -->` on a page of docs/, so that tests run the lines that people paste. */
export function readRecipe(page: string, name: string): string {
  const text = readFileSync(join(import.meta.dirname, '../../docs', page), 'utf8');
  const [, code] = new RegExp(`<!-- recipe: ${name} -->\\n+\`\`\`\\w+\\n([^]*?)\\n\`\`\``).exec(text) ?? [];
  if (code === undefined) throw new Error(`docs/${page} has no recipe ${name}`);
  return code;
}
