import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Schemas consist of schemas that consist of schemas. */
const MAX_DEPTH = 3;

/** The doc comments of operations' fields in the sources of their schemas. */
export class FieldComments {
  readonly #files: readonly string[];

  /** `folder` contains the operations, in folders by noun. */
  constructor(folder: string) {
    const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
    this.#files = names.map((name) => readFileSync(join(folder, name), 'utf8'));
  }

  /** The comment of a field of an operation's input or output; empty where there is none, or where several differ. */
  of(operation: string, side: 'input' | 'output', path: string): string {
    const file = this.#files.find((text) => text.includes(`name: '${operation}'`));
    if (file === undefined) return '';
    const rest = file.slice(file.indexOf(`name: '${operation}'`));
    const output = rest.search(/\n {2}output:/);
    const text = side === 'input' ? rest.slice(0, output) : rest.slice(output, rest.search(/\n {2}(?:who|on|errors):/));
    return this.#find(text, path, 0) ?? '';
  }

  /** The comment of a field of a shape, such as `Message`. */
  ofShape(name: string, path: string): string {
    return this.#find(this.#schema(`${name[0]!.toLowerCase()}${name.slice(1)}Schema`), path, 0) ?? '';
  }

  /** Searches the text of a schema, then the schemas that it consists of; null where there is no such field. */
  #find(text: string, path: string, depth: number): string | null {
    const key = path.split('.').at(-1)!.replaceAll('[]', '');
    const own = commentsOn(key, text);
    if (own.length > 0) return own.length === 1 ? own[0]! : '';
    if (depth === MAX_DEPTH) return null;
    const parts = new Set([...text.matchAll(/\b\w+Schema\b/g)].map(([name]) => name));
    const found = [...parts].map((name) => this.#find(this.#schema(name), path, depth + 1));
    const [first = null, ...others] = new Set(found.filter((comment) => comment !== null));
    return others.length === 0 ? first : '';
  }

  #schema(name: string): string {
    const definition = new RegExp(`const ${name} = [\\s\\S]*?;\\n(?=\\n|export|const|function)`);
    const found = this.#files.map((text) => definition.exec(text)?.[0]).find((text) => text !== undefined);
    return found ?? '';
  }
}

/** The different comments at the places of a key; a place without a comment counts as an empty one. */
function commentsOn(key: string, text: string): string[] {
  const places = new RegExp(`(?:/\\*\\*((?:(?!\\*/)[\\s\\S])*)\\*/\\s*)?(?<![\\w.])${key}:`, 'g');
  const comments = [...text.matchAll(places)].map(([, comment = '']) => comment);
  return [
    ...new Set(
      comments.map((each) =>
        each
          .replace(/\n\s*\*/g, ' ')
          .replace(/\s+/g, ' ')
          .trim(),
      ),
    ),
  ];
}
