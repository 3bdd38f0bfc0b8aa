import { randomBytes } from 'node:crypto';
import { readJson, type JsonAnswer, type TestServer } from '../support/server.ts';
import type { TestPerson } from '../support/people.ts';

export interface UploadedFile {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly size: number;
}

export const bearer = ({ token }: Pick<TestPerson, 'token'>): Record<string, string> => ({
  authorization: `Bearer ${token}`,
});

/** `POST /v1/files` with a body. */
export async function upload(
  server: Pick<TestServer, 'url'>,
  person: Pick<TestPerson, 'token'> | null,
  body: string | Buffer | ReadableStream<Uint8Array>,
  options: { name?: string; headers?: Record<string, string> } = {},
): Promise<JsonAnswer> {
  const query = options.name === undefined ? '' : `?name=${encodeURIComponent(options.name)}`;
  const response = await fetch(`${server.url}/v1/files${query}`, {
    method: 'POST',
    headers: { ...(person === null ? {} : bearer(person)), ...options.headers },
    body: body instanceof Buffer ? new Uint8Array(body) : body,
    duplex: 'half',
  });
  return readJson(response);
}

/** Uploads a file and returns it. Rejects when the server refused it. */
export async function uploaded(
  server: Pick<TestServer, 'url'>,
  person: Pick<TestPerson, 'token'>,
  body: string | Buffer = 'hello',
  name = 'a.txt',
): Promise<UploadedFile> {
  const response = await upload(server, person, body, { name });
  if (response.status !== 201) throw new Error(`${response.status}: ${JSON.stringify(response.body)}`);
  return response.body as UploadedFile;
}

/** A stream in pieces, without a known length. */
export function pieces(...chunks: readonly (string | Buffer)[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(new Uint8Array(Buffer.from(chunk)));
      controller.close();
    },
  });
}

/**
 * Random bytes, which no compression makes smaller. Their first bytes match no known type; random ones would in one of
 * 2,000 cases.
 */
export const noise = (length: number): Buffer => randomBytes(length).fill(0x81, 0, Math.min(length, 8));

/** The rows of files, without the values that differ from run to run. */
export async function rowsOf(server: TestServer): Promise<{ state: string; size: number; received: number }[]> {
  const rows = await server.database.query(
    (sql) => sql<{ state: string; size: number; received: number }[]>`
      select state, size, received from file order by created_at`,
  );
  return [...rows];
}

/** The total counters of all files; null if there are none. */
export async function usageOf(server: TestServer): Promise<{ bytes: number; files: number } | null> {
  const [row] = await server.database.query(
    (sql) => sql<{ bytes: number; files: number }[]>`select bytes, files from file_usage where account_id = 0`,
  );
  return row === undefined ? null : { ...row };
}

/** Changes the row of the file as if a message of the conversation had attached it. */
export async function attach(server: TestServer, id: string, conversation: number): Promise<void> {
  await server.database.query(
    (sql) => sql`update file set conversation_id = ${conversation}, seq = 1 where id = ${id}`,
  );
}
