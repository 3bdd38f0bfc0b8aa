import type { Command } from 'commander';
import { addressProblem, discoverServerAddress, type ServerAddress } from '../core/address.ts';
import {
  AnswerTimeoutError,
  ConnectionError,
  ProtocolError,
  ServerError,
  SessionOverError,
  TooManyPendingRequestsError,
} from '../core/chat-error.ts';
import { LiveClient, type LiveClientOptions } from '../core/live-client.ts';
import { connectFunctionFor } from '../node/connect-to.ts';
import type { ChatContext } from './context.ts';
import { loadProfile, parseProfileName, profilePath, type Profile } from './chat-profile.ts';
import { ChatCommandError } from './command-error.ts';
import { replaceControlCharacters } from '../core/safe-text.ts';

/** Options of every `klatch chat` command. */
export interface ChatOptions {
  readonly server?: string;
  readonly profile?: string;
}

/** A profile with the address of its server. */
interface ProfileAndAddress {
  readonly profile: Profile;
  readonly address: ServerAddress;
}

/** Adds the options that choose another profile, or another address of its server, to a command. */
export function withServerAndProfile(command: Command): Command {
  return command
    .option(
      '--server <address>',
      'connect here instead of where the sign-in was: ws://, wss://, tcp://, tls:// or http(s)://',
    )
    .option('--profile <name>', 'the session that was signed in under this name', parseProfileName);
}

/** The session that a command uses, and the address of its server for clients. Throws ChatCommandError. */
export async function findProfileAndAddress(context: ChatContext, options: ChatOptions): Promise<ProfileAndAddress> {
  const { profile, server } = loadProfileAndServer(context, options);
  return { profile, address: await requireServerAddress(server) };
}

/** The session that a command uses, and the server's address as the person typed it. Throws ChatCommandError. */
export function loadProfileAndServer(
  context: ChatContext,
  { server, profile: name }: ChatOptions,
): { profile: Profile; server: string } {
  const profile = loadProfile(profilePath(context.env, name));
  return { profile, server: server ?? profile.server };
}

/**
 * Finds the address at which a server accepts clients, from the address that a person typed. Throws ChatCommandError.
 */
export async function requireServerAddress(text: string): Promise<ServerAddress> {
  const problem = addressProblem(text);
  if (problem !== null) throw new ChatCommandError('usage', `--server: ${problem}`);
  return withExplainedErrors(() => discoverServerAddress(text));
}

/**
 * Makes requests as the signed-in account, over a connection that is closed after `work`. `waitMs`: the time for which
 * each request waits for an unreachable server. Throws ChatCommandError.
 */
export async function withSignedInClient<Result>(
  context: ChatContext,
  options: ChatOptions & { readonly waitMs?: number },
  work: (client: LiveClient) => Promise<Result>,
): Promise<Result> {
  const { profile, address } = await findProfileAndAddress(context, options);
  const { waitMs } = options;
  const bounds = waitMs === undefined ? {} : { answerTimeoutMs: waitMs };
  const connect = connectFunctionFor(address);
  const client = new LiveClient({ connect, token: profile.token, follow: null, listener: () => {}, bounds });
  return withClientStartedAndStopped(client, async () => {
    if (waitMs === undefined) await client.awaitFirstAttempt();
    return work(client);
  });
}

/** Runs a client while the work runs. Throws ChatCommandError for errors that a person can act on. */
export async function withClientStartedAndStopped<Result>(
  client: LiveClient,
  work: () => Promise<Result>,
): Promise<Result> {
  client.start();
  try {
    return await withExplainedErrors(work);
  } finally {
    await client.stop();
  }
}

/** Creates a client that follows conversations. */
export function createFollowingClient(
  { profile, address }: ProfileAndAddress,
  { follow, listener }: Pick<LiveClientOptions, 'follow' | 'listener'>,
): LiveClient {
  return new LiveClient({ connect: connectFunctionFor(address), token: profile.token, follow, listener });
}

/** Throws ChatCommandError for errors that a person can act on; rethrows any other. */
export async function withExplainedErrors<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw explainChatError(error);
  }
}

/** Translates a client's error into a sentence for the person who ran a command. Returns any other value unchanged. */
export function explainChatError(error: unknown): unknown {
  if (error instanceof SessionOverError) {
    const sentence = `${replaceControlCharacters(error.message)}: sign in again with \`klatch chat sign-in\``;
    return new ChatCommandError('operationFailed', sentence, { cause: error });
  }
  if (error instanceof ServerError) {
    const reason = error.assumedRetrySIfTransient === null ? 'operationFailed' : 'unavailable';
    return new ChatCommandError(reason, replaceControlCharacters(error.message), { cause: error });
  }
  const kinds = [ConnectionError, AnswerTimeoutError, ProtocolError, TooManyPendingRequestsError];
  if (!kinds.some((kind) => error instanceof kind)) return error;
  return new ChatCommandError('unavailable', replaceControlCharacters((error as Error).message), { cause: error });
}
