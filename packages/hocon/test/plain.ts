import { HoconError, loadHocon, type LoadOptions, type Value } from '../src/index.ts';

/** Returns the value as plain JSON. */
export function plain(value: Value): unknown {
  if (value.kind === 'object') return Object.fromEntries([...value.entries].map(([key, child]) => [key, plain(child)]));
  if (value.kind === 'array') return value.items.map(plain);
  if (value.kind === 'string') return value.text;
  if (value.kind === 'number') return value.number;
  return value.kind === 'boolean' ? value.value : null;
}

/** Reads texts as one configuration; their names are t, or t1, t2 … if there are several. */
export function read(text: string | readonly string[], options: Partial<LoadOptions> = {}): unknown {
  const texts = typeof text === 'string' ? [text] : text;
  const sources = texts.map((text, index) => ({ name: texts.length === 1 ? 't' : `t${index + 1}`, text }));
  return plain(loadHocon(sources, { env: {}, ...options }));
}

/** Returns the message of the HoconError that `work` throws; rethrows any other error. */
export function messageOf(work: () => unknown): string {
  try {
    return `no error, but ${JSON.stringify(work())}`;
  } catch (error) {
    if (error instanceof HoconError) return error.message;
    throw error;
  }
}
