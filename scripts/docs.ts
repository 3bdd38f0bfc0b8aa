/**
 * Writes the generated pages, each from its source:
 * - docs/configuration.md: the comments of src/config/reference.conf.
 * - etc/klatch/server.conf.template: the keys of src/config/reference.conf, with the first sentence about each.
 * - docs/command-line.md: the commands of the program.
 * - docs/api.md and docs/openapi.json: the operations.
 * - docs/access.md: test/access/matrix.ts, which a test checks.
 * - docs/callers.md: the registry of programs and the texts of their fixtures.
 * - docs/web-figures.md: the last whole run of `make bench ONLY=web`.
 * - web/screens/webhooks/verify-code.ts: the recipes in docs/reverse-webhooks.md that verify a delivery.
 * - The manual pages: the sources of the first two. `--check` writes nothing and exits 1 if a page is not up to date.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readResult } from '../bench/web/result.ts';
import { readAsset } from '../src/assets.ts';
import { CONFIG_SCHEMA } from '../src/config/schema.ts';
import type { SettingKey } from '../src/config/schema.ts';
import { renderAccess } from './access-page.ts';
import { renderApi } from './api-page.ts';
import { renderCallers } from './callers-page.ts';
import { renderCommandLine } from './command-line-page.ts';
import { renderConfigTemplate } from './config-template.ts';
import { renderCommandManual, renderConfigurationManual } from './manual-pages.ts';
import { plain } from './markdown.ts';
import { renderOpenApi } from './openapi.ts';
import { readReference, type KeyDocument } from './reference-document.ts';
import { renderVerifyCode } from './verify-code.ts';
import { renderWebFigures } from './web-figures-page.ts';

const ROOT = join(import.meta.dirname, '..');

const INTRODUCTION = `Klatch reads \`server.conf\` over the defaults below. A change takes effect when the server is restarted.
\`klatch config check\` names every mistake in the file, \`klatch config show\` prints what is in force.`;

/** Renders docs/configuration.md: a part for each section, a paragraph for each key. */
export function renderConfiguration(reference: string): string {
  const { head, sections, keys } = readReference(reference);
  const parts = ['# Configuration', `<!-- Made by scripts/docs.ts from src/config/reference.conf. Do not edit. -->`];
  parts.push(INTRODUCTION, plain(paragraphs(head).at(-1) ?? ''), contents(keys));
  let section: string | null = null;
  for (const key of keys) {
    const own = sectionOf(key.key);
    if (own !== section) parts.push(`## ${own === '' ? 'General' : own}`);
    if (own !== section && sections.has(own)) parts.push(plain(sections.get(own)!));
    section = own;
    parts.push(`### \`${key.key}\``, plain(key.explanation), `Value: ${plain(key.value)}. ${defaultSentence(key)}`);
  }
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

function contents(keys: readonly KeyDocument[]): string {
  const rows = keys.map(
    ({ key, defaultValue }) => `| \`${key}\` | ${defaultValue === null ? 'none' : `\`${defaultValue}\``} |`,
  );
  return ['| Key | Default |', '|---|---|', ...rows].join('\n');
}

const sectionOf = (key: string): string => key.split('.').slice(0, -1).join('.');

function defaultSentence({ key, defaultValue }: KeyDocument): string {
  if (defaultValue !== null) return `Default: \`${defaultValue}\`.`;
  const isRequired = CONFIG_SCHEMA[key as SettingKey].presence === 'required';
  return isRequired ? 'No default: it has to be set.' : 'Not set by default.';
}

/** Lines of one comment as paragraphs. */
function paragraphs(lines: readonly string[]): string[] {
  return lines
    .join('\n')
    .split('\n\n')
    .map((paragraph) => paragraph.replaceAll('\n', ' '));
}

/** The day of the release in debian/changelog, so that the pages do not depend on the day of their generation. */
function releaseDate(): string {
  const text = readFileSync(join(ROOT, 'debian/changelog'), 'utf8');
  const date = / {2}(\w{3}, \d{2} \w{3} \d{4})/.exec(text)?.[1];
  if (date === undefined) throw new Error('debian/changelog: its first entry ends with no date');
  return new Date(`${date} UTC`).toISOString().slice(0, 10);
}

/** Null before the first complete run of `make bench ONLY=web`: then there is no page of figures. */
const webResult = readResult();

const COMMANDS = 'the commands in src/cli and client/terminal';

/** The generated pages with their sources. */
const PAGES: readonly { path: string; source: string; render: () => string }[] = [
  {
    path: 'docs/configuration.md',
    source: 'src/config/reference.conf',
    render: () => renderConfiguration(readAsset('config/reference.conf')),
  },
  {
    path: 'etc/klatch/server.conf.template',
    source: 'src/config/reference.conf',
    render: () => renderConfigTemplate(readAsset('config/reference.conf')),
  },
  { path: 'docs/command-line.md', source: COMMANDS, render: () => renderCommandLine() },
  { path: 'docs/api.md', source: 'src/operations', render: renderApi },
  { path: 'docs/access.md', source: 'test/access/matrix.ts', render: renderAccess },
  { path: 'docs/callers.md', source: 'src/callers/programs and test/callers/fixtures', render: renderCallers },
  { path: 'docs/openapi.json', source: 'src/operations', render: renderOpenApi },
  ...(webResult === null
    ? []
    : [{ path: 'docs/web-figures.md', source: 'bench/web/result.json', render: () => renderWebFigures(webResult) }]),
  { path: 'web/screens/webhooks/verify-code.ts', source: 'docs/reverse-webhooks.md', render: renderVerifyCode },
  { path: 'docs/man/klatch.1', source: COMMANDS, render: () => renderCommandManual(releaseDate()) },
  {
    path: 'docs/man/klatch.conf.5',
    source: 'src/config/reference.conf',
    render: () => renderConfigurationManual(releaseDate(), readReference(readAsset('config/reference.conf'))),
  },
];

function main(): void {
  for (const { path, source, render } of PAGES) {
    const page = join(ROOT, path);
    if (!process.argv.includes('--check')) {
      writeFileSync(page, render());
      console.log(`wrote ${path}`);
    } else if (!existsSync(page) || readFileSync(page, 'utf8') !== render()) {
      console.error(`${path} is not up to date with ${source}: run "npm run docs" and commit the result.`);
      process.exitCode = 1;
    }
  }
}

if (import.meta.main) main();
