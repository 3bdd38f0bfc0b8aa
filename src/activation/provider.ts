import type { ActivationProviderName, AddressKind } from '../model/proof-address.ts';

/** Why a provider failed, as a word for the log: it names no address and holds no code. */
export type ProviderFailure =
  /** The provider did not answer in time. */
  | 'timeout'
  /** The connection failed or broke. */
  | 'connection'
  /** TLS is not available, or the certificate is not trusted. */
  | 'tls'
  /** The provider refused the token, or user and password. */
  | 'login'
  /** The answer does not follow the protocol, or is a redirect. */
  | 'answer'
  /** The provider does not send to this address. */
  | 'address'
  /** The provider reports a failure of its own. */
  | 'refused'
  /** This server has reached its limit of concurrent requests to the provider. */
  | 'busy'
  /** This server is stopping. */
  | 'stopped';

/** A provider could not do its work. `detail` is for the log: status, type or error code, nothing else. */
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

/** A code to send. */
export interface OutgoingCode {
  /** In the form of `model/proof-address.ts`. */
  readonly address: string;
  readonly code: string;
  /** How long the code will be valid. */
  readonly validMs: number;
}

/**
 * A provider sends codes to addresses of one kind. All its promises settle in time and reject only with ProviderError.
 */
export interface CodeProvider {
  readonly name: ActivationProviderName;
  readonly kind: AddressKind;
  /** Checks whether it can send at all, without sending; rejects when it cannot. */
  probe(): Promise<void>;
  /** Sends a code. Resolves with the provider's reference of it; null when this server checks the code. */
  send(code: OutgoingCode): Promise<string | null>;
  /**
   * Whether this is the code with the provider's `reference`; for null it checks one that does not exist, which takes
   * as long. Null for providers whose codes this server checks.
   */
  readonly verifyCode: ((reference: string | null, code: string) => Promise<boolean>) | null;
  /** Ends running work. */
  stop(): Promise<void>;
}
