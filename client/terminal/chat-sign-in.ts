import { hostname } from 'node:os';
import { Option, type Command } from 'commander';
import { callOnNewConnection } from '../core/call-on-new-connection.ts';
import { ServerError, SessionOverError } from '../core/chat-error.ts';
import type { ConnectFunction } from '../core/connection.ts';
import {
  anything,
  constant,
  nonEmptyString,
  objectWithAtLeast,
  string,
  type Decoded,
  type Decoder,
} from '../core/decode.ts';
import { decodeAccount, decodeAuthenticated } from '../core/shapes.ts';
import { connectFunctionFor } from '../node/connect-to.ts';
import { print, printError, type ChatContext, type Prompt } from './context.ts';
import {
  withSignedInClient,
  explainChatError,
  requireServerAddress,
  withServerAndProfile,
  type ChatOptions,
} from './chat-client.ts';
import { sanitize } from '../core/safe-text.ts';
import { hasProfile, loadProfile, parseProfileName, profilePath, removeProfile, saveProfile } from './chat-profile.ts';
import { ChatCommandError } from './command-error.ts';

interface SignInOptions {
  readonly server: string;
  readonly profile?: string;
  readonly link?: string | true;
  readonly token?: boolean;
  readonly address?: string;
  readonly invite?: string;
  readonly label: string;
}

const decodeSignedIn = objectWithAtLeast({
  status: constant('signed_in'),
  token: nonEmptyString,
  account: decodeAccount,
});
const decodeAuthStarted = objectWithAtLeast({ transaction: string, channel: string });
const decodeSignUpNeeded = objectWithAtLeast({ status: constant('sign_up'), transaction: string });
type SignedIn = Decoded<typeof decodeSignedIn>;
/** The result of proving an address: a session, or `sign_up` for an address that has no account yet. */
type VerifyResult = SignedIn | Decoded<typeof decodeSignUpNeeded>;
const decodeVerifyResult: Decoder<VerifyResult> = (value) =>
  objectWithAtLeast({ status: string })(value).status === 'sign_up' ? decodeSignUpNeeded(value) : decodeSignedIn(value);

const MAX_CODE_OR_NICK_TRIES = 3;
/** A whole sign-in link, or its token (the part after #). Only the server knows how long a token is. */
const SIGN_IN_LINK_PATTERN = /^(?:\S*#)?kll_[\w-]+$/;
const NICK_PATTERN = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,30}[A-Za-z0-9])?$/;

export function addSignIn(chat: Command, context: ChatContext): void {
  const command = chat
    .command('sign-in')
    .description('sign in to a server, and keep the session for the other commands')
    .requiredOption(
      '--server <address>',
      'the server: http(s)://, which files need; or ws://, wss://, tcp:// or tls:// with its port',
    )
    .option(
      '--link [link]',
      'sign in with a link of `klatch user invite`; without a value, or -, it is asked for or read from standard input',
    )
    .option(
      '--address <address>',
      'sign in or sign up with an e-mail address or telephone number: a code is sent to it',
    )
    .option(
      '--token',
      "use a token that there is already, such as a bot's or an app password: it is asked for, or read from standard input",
    )
    .option(
      '--invite <link>',
      'the invitation into a group, where the server wants one to sign up; alone where the server sends no codes',
    )
    .addOption(
      // The help shows constant words instead of the host name, because the documents quote the help.
      new Option('--label <text>', 'what the session is called in your list of sessions').default(
        `klatch chat on ${hostname()}`,
        "klatch chat on this machine's name",
      ),
    )
    .option('--profile <name>', 'keep it under this name, beside other sessions', parseProfileName)
    .action((options: SignInOptions) => signIn(context, options));
  context.withExamples(command, [
    'klatch chat sign-in --server https://chat.example.org --link',
    'klatch chat sign-in --server wss://chat.example.org --address alice@example.org',
    'klatch chat sign-in --server https://chat.example.org --invite https://chat.example.org/v1/groups/invites/…',
    'klatch chat sign-in --server http://127.0.0.1:9090 --link - --profile test < link.txt',
  ]);
}

export function addSignOut(chat: Command, context: ChatContext): void {
  const command = chat
    .command('sign-out')
    .description('end the session on the server, and forget it here')
    .action(async (options: ChatOptions) => {
      const path = profilePath(context.env, options.profile);
      if (!hasProfile(path)) loadProfile(path);
      await endSessionOnServer(context, options);
      removeProfile(path);
      print(context, 'Signed out.');
    });
  context.withExamples(withServerAndProfile(command), ['klatch chat sign-out']);
}

async function signIn(context: ChatContext, options: SignInOptions): Promise<void> {
  const { server, profile } = options;
  const signInBy = chooseWay(options);
  const address = await requireServerAddress(server);
  if (!address.usesTls && !address.isLoopback) {
    printError(context, `klatch: the way to ${address.url} is not encrypted: others on it can read along`);
  }
  try {
    const signedIn = await signInBy(context, connectFunctionFor(address), options);
    const { token, account } = signedIn;
    saveProfile(profilePath(context.env, profile), { server, token, account: { id: account.id, nick: account.nick } });
    print(context, `Signed in as ${sanitize(account.nick)}.`);
  } catch (error) {
    throw explainChatError(error);
  }
}

type WayToSignIn = (context: ChatContext, connect: ConnectFunction, options: SignInOptions) => Promise<SignedIn>;

function chooseWay({ link, token: isToken, address, invite }: SignInOptions): WayToSignIn {
  const count = [link, isToken, address].filter((way) => way !== undefined).length;
  if (count === 0 && invite !== undefined) return signUpByInvite;
  if (count !== 1) throw new ChatCommandError('usage', 'give one of --link, --address, --token and --invite');
  if (address !== undefined) return signInByCode;
  return isToken === true ? signInByToken : signInByLink;
}

async function signInByLink(
  context: ChatContext,
  connect: ConnectFunction,
  { link, label }: SignInOptions,
): Promise<SignedIn> {
  const text = typeof link === 'string' && link !== '-' ? link : await readSignInLink(context);
  const problem = signInLinkProblem(text);
  if (problem !== null) throw new ChatCommandError('usage', problem);
  const params = { link: text, label };
  return callOnNewConnection(connect, { method: 'auth.verify', params, decode: decodeSignedIn });
}

async function signInByToken(context: ChatContext, connect: ConnectFunction): Promise<SignedIn> {
  const token = await readSecretFromPromptOrStdin(context, { text: 'The token', check: () => null });
  const request = { method: 'live.authenticate', params: { token }, decode: decodeAuthenticated };
  const { account } = await callOnNewConnection(connect, request);
  return { status: 'signed_in', token, account };
}

const readSignInLink = (context: ChatContext): Promise<string> =>
  readSecretFromPromptOrStdin(context, { text: 'The sign-in link', check: signInLinkProblem });

/**
 * The problem of a text that does not have the form of a sign-in link; null: it has that form. The problem does not
 * quote the text, which may be a secret.
 */
function signInLinkProblem(text: string): string | null {
  if (SIGN_IN_LINK_PATTERN.test(text.trim())) return null;
  return 'this is no sign-in link: give the whole first line of what `klatch user invite` prints';
}

/**
 * Reads a secret from the terminal or from standard input. Other users of the machine could see it on the command line.
 */
async function readSecretFromPromptOrStdin(
  context: ChatContext,
  { text, check }: { text: string; check: (typed: string) => string | null },
): Promise<string> {
  if (context.input.isTTY) return withPrompt(context, (prompt) => prompt.ask({ text, isTypingHidden: true, check }));
  // Accepts the whole output of `klatch user invite`, which has sentences below the link.
  const lines = (await context.readTextFromStdin()).split('\n').map((line) => line.trim());
  const first = lines.find((line) => line !== '');
  if (first !== undefined) return first;
  throw new ChatCommandError('usage', `${text} is expected on standard input, which is empty`);
}

/**
 * Signs in by a code. Uses a connection for each step: a person takes longer than a server waits for an unauthenticated
 * client.
 */
async function signInByCode(context: ChatContext, connect: ConnectFunction, options: SignInOptions): Promise<SignedIn> {
  const { address: emailOrPhone, label } = options;
  const inviteParam = options.invite === undefined ? {} : { invite: extractInviteToken(options.invite) };
  const start = { method: 'auth.start', params: { address: emailOrPhone, ...inviteParam }, decode: decodeAuthStarted };
  const { transaction, channel } = await callOnNewConnection(connect, start);
  print(
    context,
    channel === 'email'
      ? 'If it can be used here, a letter with a code is on its way.'
      : 'If it can be used here, a code is on its way.',
  );
  return withPrompt(context, async (prompt) => {
    const verified = await verifyCode(prompt, connect, { transaction, label });
    if (verified.status === 'signed_in') return verified;
    prompt.say('This address is new here. Choose what you are called:');
    return signUp(prompt, connect, {
      transaction: verified.transaction,
      label,
      ...inviteParam,
    });
  });
}

/** Creates an account by an invitation alone, at a server that sends no codes. */
async function signUpByInvite(
  context: ChatContext,
  connect: ConnectFunction,
  { label, invite }: SignInOptions,
): Promise<SignedIn> {
  return withPrompt(context, (prompt) => {
    prompt.say('Choose what you are called:');
    return signUp(prompt, connect, { label, invite: extractInviteToken(invite!) });
  });
}

async function verifyCode(
  prompt: Prompt,
  connect: ConnectFunction,
  knownParams: { transaction: string; label: string },
): Promise<VerifyResult> {
  const check = (typed: string): string | null => (/^\d{4,10}$/.test(typed) ? null : 'the code has digits only');
  for (let tries = 1; ; tries += 1) {
    const code = await prompt.ask({ text: 'The code', check });
    try {
      return await callOnNewConnection(connect, {
        method: 'auth.verify',
        params: { ...knownParams, code },
        decode: decodeVerifyResult,
      });
    } catch (error) {
      if (!(error instanceof ServerError) || error.code !== 'invalid_code' || tries === MAX_CODE_OR_NICK_TRIES)
        throw error;
      prompt.say(`  ${sanitize(error.message)}`);
    }
  }
}

async function signUp(
  prompt: Prompt,
  connect: ConnectFunction,
  knownParams: { transaction?: string; label: string; invite?: string },
): Promise<SignedIn> {
  const check = (typed: string): string | null =>
    NICK_PATTERN.test(typed)
      ? null
      : '1 to 32 letters, digits, dots, dashes or underscores, with a letter or digit at both ends';
  for (let tries = 1; ; tries += 1) {
    const nick = await prompt.ask({ text: 'Nick', check });
    const name = await prompt.ask({ text: 'Name that people see', defaultValue: nick, check: () => null });
    try {
      return await callOnNewConnection(connect, {
        method: 'auth.sign-up',
        params: { ...knownParams, nick, name },
        decode: decodeSignedIn,
      });
    } catch (error) {
      if (!(error instanceof ServerError) || error.code !== 'nick_taken' || tries === MAX_CODE_OR_NICK_TRIES)
        throw error;
      prompt.say(`  ${sanitize(error.message)}`);
    }
  }
}

/** The token of an invitation; accepts a whole link. */
function extractInviteToken(text: string): string {
  return text
    .trim()
    .replace(/[?#].*$/, '')
    .replace(/\/+$/, '')
    .split('/')
    .at(-1)!;
}

async function withPrompt<Result>(context: ChatContext, work: (prompt: Prompt) => Promise<Result>): Promise<Result> {
  const prompt = context.createPrompt();
  try {
    return await work(prompt);
  } finally {
    prompt.stop();
  }
}

/**
 * Ends the session on the server, which then closes the connection. A session that has already ended counts as success.
 */
async function endSessionOnServer(context: ChatContext, options: ChatOptions): Promise<void> {
  try {
    await withSignedInClient(context, options, async (client) => {
      const params = { session: client.signInSessionNumber };
      await Promise.race([client.call('sessions.end', params, { decode: anything }), client.ended]);
    });
  } catch (error) {
    const { cause, message } = error as Error;
    if (cause instanceof SessionOverError) return;
    // The token of a bot may lack the scope for ending its own session: then only the bot's owner can end it.
    if (!(cause instanceof ServerError) || cause.code !== 'missing_scope') throw error;
    printError(context, `klatch: the token goes on being good: ${message}`);
  }
}
