import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

const FOLDER = join(import.meta.dirname, '../../docs/cluster');
/** The network and the first server in the files of docs/cluster.md. */
const DOCUMENTED_PREFIX = '192.0.2.';
const DOCUMENTED_SERVER = { name: 'db1', hostNumber: 11 };

/** The values that replace those in the files of docs/cluster.md. */
interface DocumentedValues {
  /** The first three numbers of all addresses, with a dot at the end. */
  readonly prefix: string;
  /** The server for which the file is written: its name and host number replace those of db1. By default it is db1. */
  readonly server?: { readonly name: string; readonly hostNumber: number };
  /** Further replacements: the new text by the old one. The file has to contain each old text. */
  readonly texts?: Readonly<Record<string, string>>;
}

/**
 * Returns a file of docs/cluster with other values. The faults run with these files, so that the page shows a tested
 * configuration. Rejects if the file lacks one of the texts.
 */
export async function readDocumentedFile(
  name: string,
  { prefix, server = DOCUMENTED_SERVER, texts = {} }: DocumentedValues,
): Promise<string> {
  let text = await readFile(join(FOLDER, name), 'utf8');
  const documented = `${DOCUMENTED_PREFIX}${DOCUMENTED_SERVER.hostNumber}`;
  const own = `${DOCUMENTED_PREFIX}${server.hostNumber}`;
  text = text
    .split('\n')
    .map((line) =>
      isOwnLine(line) ? line.replace(DOCUMENTED_SERVER.name, server.name).replace(documented, own) : line,
    )
    .join('\n');
  for (const [from, to] of Object.entries(texts)) {
    if (!text.includes(from)) throw new Error(`docs/cluster/${name} says nothing of ${from}`);
    text = text.replaceAll(from, to);
  }
  return text.replaceAll(DOCUMENTED_PREFIX, prefix);
}

/** Whether a line differs between the servers, according to the comments in the files. */
function isOwnLine(line: string): boolean {
  return /^(?:name: |ETCD_NAME=|ETCD_\w+_URLS=|\s+connect_address: )/.test(line);
}
