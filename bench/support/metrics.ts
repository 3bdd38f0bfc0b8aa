import type { ServerProcess } from '../../test/support/server-process.ts';

/** The URL of the server's metrics. */
export async function metricsUrl(server: ServerProcess): Promise<string> {
  const status = await server.operate<{ metrics_url: string | null }>('server.status');
  if (status.metrics_url === null) throw new Error('the server serves no metrics');
  return status.metrics_url;
}

/** The value of one series of the metrics. `series` is its name, with its labels if it has any. */
export async function countOf(url: string, series: string): Promise<number> {
  const text = await (await fetch(url)).text();
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  if (line === undefined) throw new Error(`the server has no metric ${series}`);
  return Number(line.slice(series.length));
}
