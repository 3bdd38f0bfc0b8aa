/**
 * The catalogue of errors that reach somebody outside: a stable code, how each edge shows it, and a public sentence.
 * The cause stays for the log. Each edge has one renderer: `http/problems.ts` and `live/json-rpc.ts`.
 */
interface ErrorKind {
  readonly status: number;
  readonly rpcCode: number;
  readonly sentence: string;
  /** Seconds for `Retry-After`; only for what a repeat can mend. */
  readonly retryAfterS?: number;
}

const catalogue = {
  wrong_token: { status: 404, rpcCode: -32004, sentence: 'Wrong integration token' },
  group_archived: { status: 410, rpcCode: -32010, sentence: 'This group is archived' },
  hook_not_found: { status: 410, rpcCode: -32011, sentence: 'Webhook with given id not found' },
  hook_exists: { status: 409, rpcCode: -32009, sentence: 'Webhooks with provided uri is already registered' },
  hook_url: { status: 400, rpcCode: -32012, sentence: 'Malformed outgoing hook uri' },
  hook_address: { status: 400, rpcCode: -32013, sentence: 'The address policy refuses this address' },
  no_server_key: {
    status: 400,
    rpcCode: -32025,
    sentence:
      'signature: v1a is made with a server key, and this server has none: the administrator makes one with ' +
      '"klatch keys generate" and lists it in modules.security.server-keys',
  },
  hooks_full: { status: 403, rpcCode: -32014, sentence: 'This group has as many reverse webhooks as it may have' },
  invalid_input: { status: 400, rpcCode: -32602, sentence: 'The request cannot be read' },
  invalid_request: { status: 400, rpcCode: -32600, sentence: 'This is not a request that HTTP/1.1 allows' },
  too_large: { status: 413, rpcCode: -32015, sentence: 'The request is too large' },
  unsupported_media: { status: 415, rpcCode: -32016, sentence: 'The body is encoded in a way that is not supported' },
  key_reused: {
    status: 422,
    rpcCode: -32017,
    sentence: 'This Idempotency-Key was used for another body; use a new key for a new message',
  },
  hop_limit: {
    status: 508,
    rpcCode: -32018,
    sentence: 'This message went round between webhooks too often (klatch-hops)',
  },
  not_found: { status: 404, rpcCode: -32019, sentence: 'There is nothing here' },
  nick_taken: { status: 409, rpcCode: -32020, sentence: 'This nick is taken' },
  not_member: { status: 403, rpcCode: -32022, sentence: 'Only members of a group can do this' },
  hook_not_restorable: { status: 409, rpcCode: -32023, sentence: 'This reverse webhook cannot be restored' },
  request_timeout: { status: 408, rpcCode: -32021, sentence: 'The request was not complete in time' },
  intake_full: {
    status: 503,
    rpcCode: -32030,
    sentence: 'The server has too many messages waiting; this one was not posted, please repeat it',
    retryAfterS: 2,
  },
  rate_exceeded: {
    status: 503,
    rpcCode: -32031,
    sentence: 'This token is used faster than it may be; nothing was done, please repeat it later',
    retryAfterS: 5,
  },
  ping_refused: {
    status: 503,
    rpcCode: -32039,
    sentence: 'A reverse webhook is pinged once in 5 seconds; this ping was not sent, please repeat it later',
    retryAfterS: 5,
  },
  retries_full: {
    status: 503,
    rpcCode: -32038,
    sentence: 'This reverse webhook has too many messages to repeat; nothing was done, please repeat it later',
    retryAfterS: 60,
  },
  database_away: {
    status: 503,
    rpcCode: -32032,
    sentence: 'The database is away; nothing was done, please repeat the request',
    retryAfterS: 2,
  },
  outcome_unknown: {
    status: 503,
    rpcCode: -32033,
    sentence: 'The answer of the database was lost: this may have been done; look before you repeat it',
    retryAfterS: 2,
  },
  change_unheard: {
    status: 503,
    rpcCode: -32037,
    sentence:
      'The change is stored, but the server that delivers for this hook has not confirmed it: it holds there as soon as ' +
      'that server hears of it, or reaches the database again',
    retryAfterS: 10,
  },
  starting: {
    status: 503,
    rpcCode: -32036,
    sentence: 'The server is starting; nothing was done, please repeat the request',
    retryAfterS: 2,
  },
  stopping: {
    status: 503,
    rpcCode: -32034,
    sentence: 'The server is stopping; nothing was done, please repeat the request',
    retryAfterS: 5,
  },
  internal: { status: 500, rpcCode: -32603, sentence: 'The server failed; its log has the cause' },
} as const satisfies Record<string, ErrorKind>;

/** Ends the sentence about a post whose outcome is not known. */
export const SAFE_REPEAT = 'Repeating a post is safe with an Idempotency-Key';

export type ErrorCode = keyof typeof catalogue;

/** Every code with how it is shown, for documents and tests. */
export const errorKinds: Readonly<Record<ErrorCode, ErrorKind>> = catalogue;

/** An error that is meant for the caller. `message` is the public sentence; `cause` is for the log only. */
export class KlatchError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly rpcCode: number;
  readonly retryAfterS: number | null;

  /** `sentence` takes the place of the catalogue's where the call knows more (which field, which limit). */
  constructor(code: ErrorCode, options: { sentence?: string; cause?: unknown } = {}) {
    const kind: ErrorKind = catalogue[code];
    super(options.sentence ?? kind.sentence, { cause: options.cause });
    this.name = 'KlatchError';
    this.code = code;
    this.status = kind.status;
    this.rpcCode = kind.rpcCode;
    this.retryAfterS = kind.retryAfterS ?? null;
  }
}
