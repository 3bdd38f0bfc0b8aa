import { Registry, type Metric } from 'prom-client';
import type { HistogramCounts } from '../histogram.ts';

/** One value of a family; its labels distinguish it from the others. */
export interface MetricSample<Value> {
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: Value;
}

/** Reads the samples of a metric. Resolves without samples if the value is unknown, which is not the same as 0. */
type Collect<Value> = () => readonly MetricSample<Value>[] | Promise<readonly MetricSample<Value>[]>;

/**
 * All samples of one metric. Other parts of the server count in plain counters, which cost the hot paths almost
 * nothing; a scrape reads the counters. A label must have a bounded set of values: no hook, group, host, path or token.
 */
export interface MetricFamily {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** One sentence about the metric. */
  readonly help: string;
  readonly labels: readonly string[];
  readonly lines: () => Promise<readonly ExpositionLine[]>;
}

/** One line of the exposition, in the form of prom-client. */
interface ExpositionLine {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

interface MetricDescription {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
}

export function counter(description: MetricDescription, collect: Collect<number>): MetricFamily {
  return plainFamily('counter', description, collect);
}

export function gauge(description: MetricDescription, collect: Collect<number>): MetricFamily {
  return plainFamily('gauge', description, collect);
}

export function histogram(description: MetricDescription, collect: Collect<HistogramCounts>): MetricFamily {
  const { name, labels = [] } = description;
  const lines = async (): Promise<readonly ExpositionLine[]> =>
    (await collect()).flatMap(({ labels = {}, value }) => histogramLines(name, labels, value));
  return { ...description, labels, type: 'histogram', lines };
}

/** One value without labels. */
export function singleSample<Value>(value: Value): readonly MetricSample<Value>[] {
  return [{ value }];
}

/** A sample for each entry of a table of counts. */
export function samplesByLabel<Name extends string>(
  label: string,
  values: Readonly<Record<Name, number>>,
): readonly MetricSample<number>[] {
  return Object.entries<number>(values).map(([name, value]) => ({ labels: { [label]: name }, value }));
}

/**
 * A registry of prom-client with these families. It uses none of prom-client's metric types, which keep counts of their
 * own.
 */
export function createRegistry(families: readonly MetricFamily[]): Registry {
  const registry = new Registry();
  for (const { name, help, type, lines } of families) {
    const get = async (): Promise<unknown> => ({ name, help, type, aggregator: 'sum', values: await lines() });
    registry.registerMetric({ name, help, get } as unknown as Metric);
  }
  return registry;
}

function plainFamily(
  type: 'counter' | 'gauge',
  description: MetricDescription,
  collect: Collect<number>,
): MetricFamily {
  const { name, labels = [] } = description;
  const lines = async (): Promise<readonly ExpositionLine[]> =>
    (await collect()).map(({ labels = {}, value }) => ({ metricName: name, labels, value }));
  return { ...description, labels, type, lines };
}

function histogramLines(
  name: string,
  labels: Readonly<Record<string, string>>,
  counts: HistogramCounts,
): ExpositionLine[] {
  const { bounds, cumulative, count, sum } = counts;
  const bucket = (le: number | string, value: number): ExpositionLine => ({
    metricName: `${name}_bucket`,
    labels: { ...labels, le },
    value,
  });
  return [
    ...bounds.map((bound, index) => bucket(bound, cumulative[index]!)),
    bucket('+Inf', count),
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ];
}
