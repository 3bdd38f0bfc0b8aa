/** One line of the metrics: the name with its suffix, the labels unchanged, the value. */
export interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The result of one scrape. */
export class Scrape {
  readonly text: string;
  readonly series: readonly Series[];
  /** The type of each metric, by its name. */
  readonly types: ReadonlyMap<string, string>;
  readonly helps: ReadonlyMap<string, string>;

  constructor(text: string) {
    this.text = text;
    const lines = text.split('\n').filter((line) => line !== '');
    this.series = lines.filter((line) => !line.startsWith('#')).map(parseSeries);
    const comments = (kind: string): Map<string, string> =>
      new Map(
        lines.flatMap((line): [string, string][] => {
          const [, name, rest] = new RegExp(`^# ${kind} (\\S+) (.*)$`).exec(line) ?? [];
          return name === undefined ? [] : [[name, rest!]];
        }),
      );
    this.types = comments('TYPE');
    this.helps = comments('HELP');
  }

  /** The value of the one series with this name and these labels; throws when there is none or several. */
  value(name: string, labels: Readonly<Record<string, string>> = {}): number {
    const found = this.series.filter(
      (each) => each.name === name && JSON.stringify(each.labels) === JSON.stringify(labels),
    );
    if (found.length !== 1) throw new Error(`${found.length} series ${name}${JSON.stringify(labels)}`);
    return found[0]!.value;
  }

  has(name: string): boolean {
    return this.series.some((each) => each.name === name);
  }
}

/** Scrapes as Prometheus does. */
export async function scrape(url: string): Promise<Scrape> {
  const response = await fetch(url);
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  return new Scrape(await response.text());
}

function parseSeries(line: string): Series {
  const [, name, inBraces = '', value] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
  if (name === undefined) throw new Error(`not a line of an exposition: ${line}`);
  const labels = [...inBraces.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, text]) => [label!, text!]);
  return { name, labels: Object.fromEntries(labels), value: Number(value === '+Inf' ? Infinity : value) };
}
