import { connect, type Socket } from 'node:net';
import * as z from 'zod';
import { startCommand, thisInstallation } from '../../installation.ts';
import type { Operation } from '../../operations/core/operation.ts';
import { ControlFolderError, findControlSocket } from '../../data-dir/control-socket-path.ts';
import { exitCodes } from './exit-codes.ts';
import { CommandError } from './failure.ts';

const CALL_TIMEOUT_MS = 30_000;
/** The largest answer that is read. The 100 hooks of a group, with URLs of 2,048 characters, take a fifth of it. */
const MAX_ANSWER_BYTES = 1024 * 1024;
/** The largest request: the server closes the connection if a line is longer. */
const MAX_REQUEST_BYTES = 1024 * 1024;
/** The server's error codes that mean "try again later". */
const UNAVAILABLE_CODES = new Set(['database_unavailable', 'overloaded', 'stopping']);

const answerSchema = z.union([
  z.object({ error: z.object({ message: z.string(), data: z.object({ code: z.string() }).optional() }) }),
  z.object({ result: z.unknown() }),
]);

/** Thrown when the server is of another version: the program was upgraded, and the server was not restarted. */
export class OtherVersionError extends CommandError {
  constructor(dataDir: string, options: ErrorOptions) {
    const what = 'answers as another version of Klatch does: restart the server, so that both are the same';
    super(exitCodes.unavailable, `the Klatch with the data directory ${dataDir} ${what}`, options);
  }
}

interface ControlCall<Input, Output> {
  readonly dataDir: string;
  readonly operation: Operation<Input, Output>;
  readonly input: Input;
  /** The time-out from the connection to the end of the answer. */
  readonly timeoutMs?: number;
}

/**
 * Calls an operation of the running server as the administrator, through the control socket of its data directory.
 * Rejects with CommandError:
 * - `unavailable`: no server runs or answers at the socket, or a server of another version answers
 * - `notPermitted`: this user may not use the socket
 * - `operationFailed`: the server refused the operation; `message` is its public sentence
 */
export async function callServer<Input, Output>(call: ControlCall<Input, Output>): Promise<Output> {
  const { dataDir, operation, input, timeoutMs = CALL_TIMEOUT_MS } = call;
  const request = JSON.stringify({ jsonrpc: '2.0', id: 1, method: operation.name, params: input });
  if (Buffer.byteLength(request) > MAX_REQUEST_BYTES) {
    const sentence = 'this is more than the server takes in one request, 1 MiB: send less at a time';
    throw new CommandError(exitCodes.operationFailed, sentence);
  }
  let line: string;
  try {
    line = await exchangeLines(findControlSocket(dataDir), request, timeoutMs);
  } catch (error) {
    throw explainCallFailure(error, dataDir);
  }
  const answer = answerSchema.parse(JSON.parse(line));
  if ('error' in answer) throw operationError(answer.error);
  const result = operation.output.safeParse(answer.result);
  if (result.success) return result.data;
  throw new OtherVersionError(dataDir, { cause: result.error });
}

/** Sends a request as one line, and resolves to the line of the answer. */
async function exchangeLines(socketPath: string, request: string, timeoutMs: number): Promise<string> {
  const socket = connect(socketPath);
  const timer = setTimeout(
    () => socket.destroy(noAnswerError(`did not answer within ${timeoutMs / 1000} s`)),
    timeoutMs,
  );
  try {
    socket.write(`${request}\n`);
    return await readFirstLine(socket);
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

async function readFirstLine(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.once('close', () => reject(noAnswerError('ended the connection without an answer')));
    socket.on('data', (chunk: Buffer) => {
      const end = chunk.indexOf('\n');
      chunks.push(end === -1 ? chunk : chunk.subarray(0, end));
      bytes += chunk.length;
      if (end !== -1) resolve(Buffer.concat(chunks).toString('utf8'));
      else if (bytes > MAX_ANSWER_BYTES) socket.destroy(noAnswerError('sent an answer that is too long'));
    });
  });
}

/** The error for a server that runs but does not answer. */
function noAnswerError(whatServerDid: string): CommandError {
  return new CommandError(exitCodes.unavailable, whatServerDid);
}

function operationError({ message, data }: { message: string; data?: { code: string } | undefined }): CommandError {
  const exitCode = UNAVAILABLE_CODES.has(data?.code ?? '') ? exitCodes.unavailable : exitCodes.operationFailed;
  return new CommandError(exitCode, message);
}

function explainCallFailure(error: unknown, dataDir: string): unknown {
  if (error instanceof CommandError) {
    return new CommandError(error.exitCode, `the Klatch with the data directory ${dataDir} ${error.message}`);
  }
  if (error instanceof ControlFolderError) {
    return new CommandError(exitCodes.notPermitted, error.message, { cause: error });
  }
  const { code } = error as NodeJS.ErrnoException;
  const place = `the data directory ${dataDir}`;
  if (code === 'EACCES' || code === 'EPERM') {
    const advice = 'run the command as root, or as the user that the server runs as';
    return new CommandError(exitCodes.notPermitted, `this user may not speak to the Klatch with ${place}: ${advice}`, {
      cause: error,
    });
  }
  if (code === 'ENOENT' || code === 'ECONNREFUSED' || code === 'ENOTDIR') {
    const sentence = `no Klatch runs with ${place}: start it with \`${startCommand(thisInstallation())}\``;
    return new CommandError(exitCodes.unavailable, sentence, { cause: error });
  }
  return error;
}
