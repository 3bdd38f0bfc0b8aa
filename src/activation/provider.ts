import type { ActivationProviderName, AddressKind } from '../model/proof-address.ts';

/** Why a provider failed, in a word that may be logged: it names no address and holds no code. */
export type ProviderFailure =
  /** The provider did not answer in time. */
  | 'timeout'
  /** There was no connection to the provider, or it broke. */
  | 'connection'
  /** TLS was not available, or the certificate is not trusted. */
  | 'tls'
  /** The provider refused the token, or the user and password. */
  | 'login'
  /** The provider gave an answer that its protocol does not have, or a redirect. */
  | 'answer'
  /** The provider does not send to this address. */
  | 'address'
  /** The provider reports that it failed itself. */
  | 'refused'
  /** This server already makes as many requests to the provider at once as it may. */
  | 'busy'
  /** This server is stopping. */
  | 'stopped';

/** A request to a provider failed. `detail` is for the log: status, type or error code, nothing else. */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';
  readonly failure: ProviderFailure;
  readonly detail: string | null;

  constructor(failure: ProviderFailure, detail: string | null = null) {
    super(detail === null ? failure : `${failure} (${detail})`);
    this.failure = failure;
    this.detail = detail;
  }
}

/** A code that a provider has to send. */
export interface OutgoingCode {
  /** The address, as `model/proof-address.ts` writes it. */
  readonly address: string;
  readonly code: string;
  /** How long the code is valid. The message with the code names this time. */
  readonly validMs: number;
}

/**
 * A way to send codes to addresses of one kind. All promises of a provider settle within a bounded time, and reject
 * only with ProviderError.
 */
export interface CodeProvider {
  readonly name: ActivationProviderName;
  readonly kind: AddressKind;
  /** Checks, without sending, whether the provider can send codes; rejects when it cannot. */
  probe(): Promise<void>;
  /** Sends a code. Resolves with the provider's reference of the code; null: this server checks the code itself. */
  send(code: OutgoingCode): Promise<string | null>;
  /**
   * Whether `code` is the code that the provider knows by `reference`. If `reference` is null, the call asks about a
   * code that does not exist, which takes as long. The property is null for providers whose codes this server checks
   * itself.
   */
  readonly verifyCode: ((reference: string | null, code: string) => Promise<boolean>) | null;
  /** Aborts the requests in progress: their promises reject. */
  stop(): Promise<void>;
}
