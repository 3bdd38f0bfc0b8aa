import type { Scrape } from './scrape.ts';

/** Labels that Prometheus adds to every target. */
const TARGET_LABELS = ['instance', 'job'];
const METRIC = /\b(?:klatch|process|nodejs)_[a-z_]+/g;
const MATCHER = /(\w+)(=~|!~|!=|=)"([^"]*)"/g;

/** The names of the metrics in a PromQL expression, each once. */
export function metricsIn(expression: string): string[] {
  return [...new Set(expression.match(METRIC) ?? [])];
}

/**
 * The problems of a PromQL expression, compared with the real metrics of a server: unknown metrics, labels that a
 * metric lacks, values that a label never has. Empty if there are none.
 */
export function problemsOf(expression: string, found: Scrape): string[] {
  const missing = metricsIn(expression).filter((name) => !found.has(name));
  const problems = missing.map((name) => `${name} is not exposed`);
  for (const [, name, matchers] of expression.matchAll(/\b((?:klatch|process|nodejs)_[a-z_]+)\{([^}]*)\}/g)) {
    for (const [, label, operator, value] of matchers!.matchAll(MATCHER)) {
      if (!TARGET_LABELS.includes(label!))
        problems.push(...wrongValues(found, { name: name!, label: label!, operator: operator!, value: value! }));
    }
  }
  const names = metricsIn(expression);
  for (const label of groupings(expression)) {
    const isKnown = found.series.some((each) => names.includes(each.name) && label in each.labels);
    if (!isKnown && !TARGET_LABELS.includes(label)) problems.push(`no metric here has the label ${label}`);
  }
  return problems;
}

/** The labels in all groupings of an expression, such as `by (…)` and `on (…)`. */
export function groupings(expression: string): string[] {
  const lists = [...expression.matchAll(/\b(?:by|on|without|ignoring) ?\(([^)]*)\)/g)].map(([, list]) => list!);
  return [...new Set(lists.flatMap((list) => list.split(',').map((label) => label.trim())))].filter((l) => l !== '');
}

function wrongValues(
  found: Scrape,
  matcher: { name: string; label: string; operator: string; value: string },
): string[] {
  const { name, label, operator, value } = matcher;
  const inUse = new Set(found.series.filter((each) => each.name === name).map((each) => each.labels[label]));
  const wanted = operator.endsWith('~') ? value.split('|') : [value];
  return wanted.filter((each) => !inUse.has(each)).map((each) => `${name} has no ${label}="${each}"`);
}
