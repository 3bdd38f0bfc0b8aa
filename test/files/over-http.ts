import { readJson, type JsonAnswer } from '../support/server.ts';

/** A server: a process of the real program, or one in this process. */
interface AnyServer {
  readonly url: string;
  operate<Result>(method: string, params?: unknown): Promise<Result>;
}

/** Creates an account and signs it in by a link. Resolves with the token of the session. */
export async function tokenOf(server: AnyServer, nick: string): Promise<string> {
  await server.operate('accounts.create', { nick, name: nick });
  const { link } = await server.operate<{ link: string }>('accounts.invite', { user: nick });
  const { status, body } = await call(server, { operation: 'auth.verify', input: { link } });
  if (status !== 200) throw new Error(`nobody was signed in: ${JSON.stringify(body)}`);
  return body.token as string;
}

/** Calls an operation over HTTP. */
export async function call(
  server: { readonly url: string },
  { operation, input, token }: { operation: string; input: unknown; token?: string },
): Promise<JsonAnswer> {
  const headers = {
    'content-type': 'application/json',
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  };
  const request = { method: 'POST', headers, body: JSON.stringify(input) };
  return readJson(await fetch(`${server.url}/v1/api/${operation}`, request));
}

export async function upload(
  server: { readonly url: string },
  { token, bytes, name = 'a.bin' }: { token: string; bytes: Buffer; name?: string },
): Promise<JsonAnswer> {
  const request = { method: 'POST', headers: { authorization: `Bearer ${token}` }, body: new Uint8Array(bytes) };
  return readJson(await fetch(`${server.url}/v1/files?name=${name}`, request));
}

/** Downloads a file. Resolves with its content, or with the status if that is not 200. */
export async function download(
  server: { readonly url: string },
  { token, id }: { token: string; id: string },
): Promise<Buffer | number> {
  const answer = await fetch(`${server.url}/v1/files/${id}`, { headers: { authorization: `Bearer ${token}` } });
  const bytes = Buffer.from(await answer.arrayBuffer());
  return answer.status === 200 ? bytes : answer.status;
}
