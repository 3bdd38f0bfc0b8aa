import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { TestServer } from '../support/server.ts';
import { groupings, metricsIn, problemsOf } from './promql.ts';
import { scrape, type Scrape } from './scrape.ts';

const folder = join(import.meta.dirname, '../../docs/monitoring');
const read = (name: string): string => readFileSync(join(folder, name), 'utf8');

let server: TestServer;
let found: Scrape;
beforeAll(async () => {
  server = await TestServer.start({ metrics: { metricsEnabled: true } });
  found = await scrape(server.metricsUrl);
});
afterAll(() => server.stop());

describe('an expression', () => {
  test.each([
    ['rate(klatch_nothing_total[5m])', ['klatch_nothing_total is not exposed']],
    ['klatch_intake_commit_posts', ['klatch_intake_commit_posts is not exposed']],
    ['klatch_hooks{state="asleep"}', ['klatch_hooks has no state="asleep"']],
    ['klatch_hooks{state=~"parked|asleep"}', ['klatch_hooks has no state="asleep"']],
    ['klatch_hooks{outcome="new"}', ['klatch_hooks has no outcome="new"']],
    ['sum by (pool) (klatch_hooks)', ['no metric here has the label pool']],
    ['sum by (le, instance) (rate(klatch_intake_commit_posts_bucket{job="x"}[5m]))', []],
  ])('is held against what a server exposes: %s', (expression, problems) => {
    expect(problemsOf(expression, found)).toEqual(problems);
  });
});

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig?: { readonly defaults: { readonly unit: string } };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

describe('the dashboard', () => {
  const dashboard = JSON.parse(read('dashboard.json')) as {
    readonly panels: readonly Panel[];
    readonly templating: { readonly list: readonly { readonly name: string; readonly query: { query?: string } }[] };
  };
  const panels = dashboard.panels.filter(({ type }) => type !== 'row');

  test('asks for nothing that a server does not expose', () => {
    const targets = panels.flatMap(({ targets = [] }) => targets);
    expect(targets.length).toBeGreaterThan(40);
    for (const { expr } of targets) {
      expect(metricsIn(expr)).not.toEqual([]);
      expect([expr, problemsOf(expr, found)]).toEqual([expr, []]);
    }
    for (const { query } of dashboard.templating.list.slice(1)) expect(problemsOf(query.query!, found)).toEqual([]);
  });

  test('has a unit, a description and legends in every panel, and labels in these that the result has', () => {
    for (const { title, description, fieldConfig, targets = [] } of panels) {
      expect([title, fieldConfig?.defaults.unit]).toEqual([title, expect.stringMatching(/./)]);
      expect([title, description]).toEqual([title, expect.stringMatching(/\.$/)]);
      for (const { expr, legendFormat } of targets) {
        expect([title, legendFormat]).toEqual([title, expect.stringMatching(/./)]);
        const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label);
        expect([expr, groupings(expr).filter((label) => label !== 'le')]).toEqual([expr, shown]);
      }
    }
  });

  test('shows seconds as seconds and bytes as bytes', () => {
    for (const { title, fieldConfig, targets = [] } of panels) {
      const { unit } = fieldConfig!.defaults;
      for (const { expr } of targets) {
        if (/_bytes\b/.test(expr)) expect([title, unit]).toEqual([title, 'bytes']);
        if (/_seconds(_bucket)?\b/.test(expr)) expect([title, unit]).toEqual([title, 's']);
      }
    }
  });

  test('lays its panels side by side, none over another, each with a number of its own', () => {
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
    const taken = new Set<string>();
    for (const { gridPos } of dashboard.panels) {
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          expect(taken.has(`${x},${y}`)).toBe(false);
          taken.add(`${x},${y}`);
        }
      }
    }
  });
});

/** The rules of alerts.yml by their names. The file has one layout, so no YAML parser is needed. */
function alerts(): { name: string; expr: string; text: string }[] {
  return read('alerts.yml')
    .split(/^ {6}- alert: /m)
    .slice(1)
    .map((text) => {
      const name = text.slice(0, text.indexOf('\n'));
      const [, expr = ''] = /^ {8}expr: \|-\n((?: {10}.*\n)+)/m.exec(text) ?? [];
      return { name, expr: expr.trim(), text };
    });
}

describe('the alerts', () => {
  test('ask for nothing that a server does not expose, but for whether it can be scraped', () => {
    expect(alerts().length).toBeGreaterThan(15);
    for (const { name, expr } of alerts()) {
      if (name === 'KlatchDown') expect(expr).toBe('up{job="klatch"} == 0');
      else expect([name, metricsIn(expr).length > 0, problemsOf(expr, found)]).toEqual([name, true, []]);
    }
  });

  test('wait a while, have a severity, and say in a sentence what it is and what to do', () => {
    for (const { name, text } of alerts()) {
      expect(name).toMatch(/^Klatch[A-Za-z]+$/);
      expect(text).toMatch(/^ {8}for: \d+[mh]$/m);
      expect(text).toMatch(/^ {8}labels:\n {10}severity: (critical|warning)$/m);
      expect(text).toMatch(/^ {10}summary: \S.{20,}$/m);
      expect([name, /^ {10}description: >-\n(?: {12}.*\n)+/m.exec(text)?.[0].trim()]).toEqual([
        name,
        expect.stringMatching(/[^]{80,}\.$/),
      ]);
    }
    expect(new Set(alerts().map(({ name }) => name)).size).toBe(alerts().length);
  });

  test('show only labels that are left in their results', () => {
    for (const { name, expr, text } of alerts()) {
      const shown = [...text.matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label!);
      const isGrouped = /^(sum|max|histogram_quantile)/.test(expr);
      for (const label of shown)
        expect([name, isGrouped ? groupings(expr) : ['instance']]).toEqual([name, expect.arrayContaining([label])]);
    }
  });
});

describe('docs/monitoring/README.md', () => {
  const page = read('README.md');
  const rows = page.split('\n').filter((line) => line.startsWith('|'));
  const cells = rows.map((row) =>
    row
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  );

  test('has every metric with its type, labels and meaning, in the order of the exposition, and no other', () => {
    const documented = cells.filter(([, type]) => ['counter', 'gauge', 'histogram'].includes(type!));
    const exposed = [...found.types].map(([name, type]) => {
      const own = found.series.filter(
        (each) => each.name.replace(/_(bucket|sum|count)$/, '') === name || each.name === name,
      );
      const labels = new Set(own.flatMap((each) => Object.keys(each.labels)).filter((label) => label !== 'le'));
      return [`\`${name}\``, type, [...labels].map((label) => `\`${label}\``).join(', '), found.helps.get(name)];
    });
    expect(documented).toEqual(exposed);
  });

  test('explains every label, with values that are in use', () => {
    const start = page.indexOf('## Labels');
    expect(start).toBeGreaterThan(0);
    const labels = new Set(found.series.flatMap((each) => Object.keys(each.labels)));
    labels.delete('le');
    const table = page
      .slice(start)
      .split('\n')
      .filter((line) => line.startsWith('| `'));
    expect(new Set(table.map((line) => /^\| `(\w+)`/.exec(line)![1]))).toEqual(labels);
    for (const label of ['category', 'outcome', 'pool', 'result', 'route', 'state']) {
      const row = table.find((line) => line.startsWith(`| \`${label}\``))!;
      const values = new Set(found.series.flatMap((each) => each.labels[label] ?? []));
      for (const value of values) expect([label, row]).toEqual([label, expect.stringContaining(`\`${value}\``)]);
    }
  });

  test('names metrics elsewhere only as they are', () => {
    for (const [, code] of page.matchAll(/`((?:klatch|process|nodejs)_[^`]*)`/g)) {
      const name = metricsIn(code!)[0]!;
      expect([name, found.types.has(name)]).toEqual([name, true]);
    }
  });
});
