import type { ActivationProviderName, AddressKind } from '../model/proof-address.ts';

/** Why a provider failed, in a word that may be logged: it names no address and holds no code. */
export type ProviderFailure =
  /** It did not answer in time. */
  | 'timeout'
  /** No connection, or it broke. */
  | 'connection'
  /** TLS was not to be had, or the certificate is not trusted. */
  | 'tls'
  /** The token, or user and password, were refused. */
  | 'login'
  /** It answered with something that the protocol does not know, or a redirect. */
  | 'answer'
  /** It does not send to this address. */
  | 'address'
  /** It says that it failed itself. */
  | 'refused'
  /** More at a time than this server asks it for. */
  | 'busy'
  /** This server is stopping. */
  | 'stopped';

/** A provider could not do what it was asked for. `detail` is for the log: status, type or error code, nothing else. */
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

/** A code on its way to somebody. */
export interface OutgoingCode {
  /** As `model/proof-address.ts` writes it. */
  readonly address: string;
  readonly code: string;
  /** How long the code will be good for. */
  readonly validMs: number;
}

/** A way to send codes to addresses of one kind. All its promises settle in time and reject with ProviderError alone. */
export interface CodeProvider {
  readonly name: ActivationProviderName;
  readonly kind: AddressKind;
  /** Looks whether it can send anything at all, without sending; rejects when it cannot. */
  probe(): Promise<void>;
  /** Sends a code. Resolves with what the provider knows it by; null when this server is to judge the code. */
  send(code: OutgoingCode): Promise<string | null>;
  /**
   * Whether this is the code that the provider knows by `reference`; for null it asks about one that does not exist,
   * which takes as long. Providers that leave the judgement to this server have no such function.
   */
  readonly verifyCode: ((reference: string | null, code: string) => Promise<boolean>) | null;
  /** Ends what is under way. */
  stop(): Promise<void>;
}
