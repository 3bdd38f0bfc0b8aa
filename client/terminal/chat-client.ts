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

/** What every command of `klatch chat` can be told. */
export interface ChatOptions {
  readonly server?: string;
  readonly profile?: string;
}

/** Somebody's own client, and how it is used. */
interface ProfileAndAddress {
  readonly profile: Profile;
  readonly address: ServerAddress;
}

/** Offers to go by another session than the usual one, or another way to its server. */
export function withServerAndProfile(command: Command): Command {
  return command
    .option(
      '--server <address>',
      'connect here instead of where the sign-in was: ws://, wss://, tcp://, tls:// or http(s)://',
    )
    .option('--profile <name>', 'the session that was signed in under this name', parseProfileName);
}

/** The session to use and where its server is. Throws ChatCommandError. */
export async function findProfileAndAddress(context: ChatContext, options: ChatOptions): Promise<ProfileAndAddress> {
  const { profile, server } = loadProfileAndServer(context, options);
  return { profile, address: await requireServerAddress(server) };
}

/** The session to use, and the server as a person named it. Throws ChatCommandError. */
export function loadProfileAndServer(
  context: ChatContext,
  { server, profile: name }: ChatOptions,
): { profile: Profile; server: string } {
  const profile = loadProfile(profilePath(context.env, name));
  return { profile, server: server ?? profile.server };
}

/** The address that a person typed. Throws ChatCommandError. */
export async function requireServerAddress(text: string): Promise<ServerAddress> {
  const problem = addressProblem(text);
  if (problem !== null) throw new ChatCommandError('usage', `--server: ${problem}`);
  return withExplainedErrors(() => discoverServerAddress(text));
}

/**
 * Makes requests as who is signed in; the connection is made for it and ends with it. `waitMs`: how long a server that is
 * away is waited for, by each request. Throws ChatCommandError.
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

/** Runs a client for as long as the work takes. Throws ChatCommandError for what a person can do something about. */
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

/** The options of a client that follows. */
export function createFollowingClient(
  { profile, address }: ProfileAndAddress,
  { follow, listener }: Pick<LiveClientOptions, 'follow' | 'listener'>,
): LiveClient {
  return new LiveClient({ connect: connectFunctionFor(address), token: profile.token, follow, listener });
}

/** Runs what a client does. Throws ChatCommandError for what a person can do something about. */
export async function withExplainedErrors<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw explainChatError(error);
  }
}

/** What a client's errors mean to whoever ran a command. What is none of them comes back as it is. */
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
