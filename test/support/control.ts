import { connect } from 'node:net';
import { createInterface } from 'node:readline';

/** Calls a server through its control socket. */
export async function askControl<Result>(path: string, method: string, params: unknown): Promise<Result> {
  const socket = connect(path);
  try {
    socket.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })}\n`);
    for await (const line of createInterface({ input: socket })) {
      const answer = JSON.parse(line) as { result?: Result; error?: { message: string } };
      if (answer.error !== undefined) throw new Error(answer.error.message);
      return answer.result as Result;
    }
    throw new Error('the control socket closed without an answer');
  } finally {
    socket.destroy();
  }
}
