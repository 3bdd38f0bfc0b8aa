import { signal } from '@preact/signals';
import { ConnectionError, ServerError } from '../../../client/core/chat-error.ts';
import { objectWithAtLeast, string, type Decoder } from '../../../client/core/decode.ts';
import type { BrowserSession } from '../browser-session.ts';
import { RetryingRead } from '../persistent-read.ts';
import { canSignUp, readSignInWays, sendsCodes, type SignInWays } from './sign-in-ways.ts';

/** How long a session lasts on a shared computer: a working day. */
export const SHARED_COMPUTER_SESSION_S = 12 * 60 * 60;
/** The number of attempts to enter a code that the server allows in one transaction (docs/activation.md). */
const CODE_ATTEMPTS = 3;
/**
 * The longest time for which the page lets a person wait for another code. The server sends one a minute after the
 * last. If the clock of this browser is slow, `resend_at` seems to be later.
 */
const MAX_RESEND_WAIT_MS = 60_000;

const decodeStarted = objectWithAtLeast({ transaction: string, channel: string, resend_at: string });

/** The form that the page shows. */
export type SignInStep =
  | { readonly name: 'address' }
  | {
      readonly name: 'code';
      readonly address: string;
      /** The kind of the address: `email` or `phone`. */
      readonly channel: string;
      readonly transaction: string;
      /** The time from which another code can be sent, as `Date.now` counts. */
      readonly resendAt: number;
      readonly codeFailures: number;
      /** False: the code has expired, or the person has used all attempts to enter it. */
      readonly acceptsCode: boolean;
    }
  /** The address is proven and has no account: the person chooses a nick. */
  | ({ readonly name: 'account' } & ProvenAddress);

/** The proven address for which an account is created. */
export interface ProvenAddress {
  readonly address: string;
  readonly transaction: string;
}

/** The fields that a refusal may be about. */
type SignInField = 'address' | 'code' | 'invite' | 'nick' | 'name';

/** Why the last step failed, and the field that it is about, or null. */
export interface SignInProblem {
  readonly field: SignInField | null;
  readonly sentence: string;
}

/** The requests of a sign-in. They reject with ServerError and ConnectionError. */
interface SignInApi {
  get<Answer>(path: string, decode: Decoder<Answer>): Promise<Answer>;
  call<Answer>(operation: string, input: object, decode: Decoder<Answer>): Promise<Answer>;
  /** Signs in. Resolves to null if the address is proven, but no account has this address yet. */
  openSession(proof: object): Promise<BrowserSession | null>;
}

interface SignInFlowOptions {
  readonly api: SignInApi;
  /** The token or link of an invitation that the person has opened, or null. */
  readonly invite: string | null;
  /** `pendingInvite`: the invitation that the account has not accepted yet. */
  readonly onSignedIn: (session: BrowserSession, pendingInvite: string | null) => Promise<void>;
}

/**
 * The steps of a sign-in: an address, the code that is sent to it, and for a new address the account. Its data are only
 * in the memory of the page.
 */
export class SignInFlow {
  /** How people sign in at this server; null: the page has not read it yet. */
  readonly ways = signal<SignInWays | null>(null);
  readonly waysRead = new RetryingRead();
  readonly step = signal<SignInStep>({ name: 'address' });
  /** The invitation to sign up with. */
  readonly invite = signal<string | null>(null);
  readonly problem = signal<SignInProblem | null>(null);
  readonly isBusy = signal(false);
  readonly isSharedComputer = signal(false);
  /** A counter that rises with each code that the person requests. */
  readonly requestedCodeCount = signal(0);
  readonly #options: SignInFlowOptions;

  constructor(options: SignInFlowOptions) {
    this.#options = options;
    this.invite.value = options.invite;
  }

  /** Reads how people sign in at this server. Repeats the request until the server answers. */
  async readWays(): Promise<void> {
    this.ways.value = await this.waysRead.run(() => readSignInWays(this.#options.api));
  }

  /** Whether the invitation that the page has creates an account without a code. */
  get signsUpByInvite(): boolean {
    return this.allowsSignUpByInvite && this.invite.value !== null;
  }

  /** Whether invitations create accounts without a code, because this server sends no codes. */
  get allowsSignUpByInvite(): boolean {
    const { value: ways } = this.ways;
    return ways !== null && !sendsCodes(ways) && canSignUp(ways);
  }

  /** The part of the input of each sign-in that chooses the lifetime of the session; empty: it has no fixed end. */
  get sessionChoice(): { readonly expires_in_s?: number } {
    return this.isSharedComputer.value ? { expires_in_s: SHARED_COMPUTER_SESSION_S } : {};
  }

  /** Requests that the server sends a code to an address. `pastedInvite`: empty where the person pasted none. */
  async requestCode(address: string, pastedInvite = ''): Promise<void> {
    await this.#attempt('address', async () => {
      const trimmed = address.trim();
      if (pastedInvite.trim() !== '') this.invite.value = pastedInvite.trim();
      const input = { address: trimmed, ...this.#inviteInput() };
      const { transaction, channel, resend_at: at } = await this.#options.api.call('auth.start', input, decodeStarted);
      const waitMs = Math.min(Math.max(Date.parse(at) - Date.now(), 0), MAX_RESEND_WAIT_MS);
      const codeStepFields = { transaction, resendAt: Date.now() + waitMs, codeFailures: 0, acceptsCode: true };
      this.step.value = { name: 'code', address: trimmed, channel, ...codeStepFields };
      this.requestedCodeCount.value += 1;
    });
  }

  async enterCode(text: string): Promise<void> {
    const step = this.step.value;
    if (step.name !== 'code') return;
    await this.#attempt('code', async () => {
      // People paste codes with the space that the e-mail or message shows.
      const code = text.replaceAll(/[\s-]/g, '');
      const { transaction, address } = step;
      const session = await this.#openSession({ transaction, code }).catch((error: unknown) => {
        this.#noteRefusedCode(step, error);
        throw error;
      });
      if (session === null) this.step.value = { name: 'account', address, transaction };
      else await this.#options.onSignedIn(session, this.invite.value);
    });
  }

  /** Creates the account, with the proven address if there is one. An empty name: the nick becomes the name. */
  async signUp(nick: string, name: string): Promise<void> {
    const step = this.step.value;
    if (step.name !== 'account' && !this.signsUpByInvite) return;
    await this.#attempt('nick', async () => {
      const nameInput = name.trim() === '' ? {} : { name: name.trim() };
      const proof = step.name === 'account' ? { transaction: step.transaction } : {};
      const input = { ...proof, nick: nick.trim(), ...nameInput, ...this.#inviteInput() };
      const session = await this.#openSession(input).catch((error: unknown) => {
        if (isRefusal(error, 'activation_expired')) this.step.value = { name: 'address' };
        throw error;
      });
      await this.#options.onSignedIn(session!, null);
    });
  }

  /** Returns to the form for the address. */
  startAgain(): void {
    this.step.value = { name: 'address' };
    this.problem.value = null;
  }

  #openSession(input: object): Promise<BrowserSession | null> {
    return this.#options.api.openSession({ ...input, ...this.sessionChoice });
  }

  #inviteInput(): { readonly invite?: string } {
    const { value: invite } = this.invite;
    return invite === null ? {} : { invite };
  }

  #noteRefusedCode(step: SignInStep & { name: 'code' }, error: unknown): void {
    const codeFailures = step.codeFailures + (isRefusal(error, 'invalid_code') ? 1 : 0);
    const acceptsCode = codeFailures < CODE_ATTEMPTS && !isRefusal(error, 'activation_expired');
    this.step.value = { ...step, codeFailures, acceptsCode };
  }

  /** `field`: the field that a refusal is about if the server's sentence names no field. */
  async #attempt(field: SignInField, work: () => Promise<void>): Promise<void> {
    if (this.isBusy.value) return;
    this.isBusy.value = true;
    this.problem.value = null;
    try {
      await work();
    } catch (error) {
      // The next attempt is made without the invitation: a person with an account needs none.
      if (isRefusal(error, 'invalid_invite') || isRefusal(error, 'group_archived')) this.invite.value = null;
      this.problem.value = problemOf(error, field);
    } finally {
      this.isBusy.value = false;
    }
  }
}

function isRefusal(error: unknown, code: string): boolean {
  return error instanceof ServerError && error.code === code;
}

const FIELD_BY_ERROR_CODE: Readonly<Record<string, SignInField>> = {
  invalid_code: 'code',
  invalid_invite: 'invite',
  nick_taken: 'nick',
};
/** The server names the field of a refused input at the beginning of its sentence. */
const NAMED_FIELD = /^(address|code|invite|nick|name): /;

function problemOf(error: unknown, field: SignInField): SignInProblem {
  const { message } = error as Error;
  if (!(error instanceof ServerError)) {
    const hint = error instanceof ConnectionError ? '. Try again when there is one' : '';
    return { field: null, sentence: `${message}${hint}` };
  }
  const named = NAMED_FIELD.exec(message);
  if (named !== null) return { field: named[1] as SignInField, sentence: message.slice(named[0].length) };
  if (error.code === 'invalid_input') return { field, sentence: message };
  return { field: FIELD_BY_ERROR_CODE[error.code ?? ''] ?? null, sentence: message };
}
