/**
 * The errors that clients and callers see: each has a stable code, its representation in HTTP and JSON-RPC, and a
 * public sentence. The cause of an error only goes to the log. `http/responses.ts` and `live/json-rpc.ts` write the
 * errors into answers.
 */
interface ErrorKind {
  readonly status: number;
  readonly rpcCode: number;
  readonly sentence: string;
  /** The seconds in the header `Retry-After`; only for errors after which a repeated request may succeed. */
  readonly retryAfterS?: number;
}

const errorCatalogue = {
  invalid_token: { status: 404, rpcCode: -32004, sentence: 'Wrong integration token' },
  invalid_signature: {
    status: 401,
    rpcCode: -32069,
    sentence: 'This group takes such a post only with a valid signature: sign it with the secret of the group',
  },
  group_archived: { status: 410, rpcCode: -32010, sentence: 'This group is archived' },
  hook_not_found: { status: 410, rpcCode: -32011, sentence: 'Webhook with given id not found' },
  hook_exists: { status: 409, rpcCode: -32009, sentence: 'Webhooks with provided uri is already registered' },
  invalid_hook_url: { status: 400, rpcCode: -32012, sentence: 'Malformed outgoing hook uri' },
  hook_address_forbidden: {
    status: 400,
    rpcCode: -32013,
    sentence:
      'The address policy refuses this address: the administrator can allow it with delivery.allow in server.conf',
  },
  no_server_key: {
    status: 400,
    rpcCode: -32025,
    sentence:
      'signature: v1a is made with a server key, and this server has none: the administrator makes one with ' +
      '"klatch keys generate" and lists it in modules.security.server-keys',
  },
  too_many_hooks: {
    status: 403,
    rpcCode: -32014,
    sentence: 'This group has as many reverse webhooks as it may have: remove one first',
  },
  invalid_input: { status: 400, rpcCode: -32602, sentence: 'The request cannot be read' },
  invalid_request: { status: 400, rpcCode: -32600, sentence: 'This is not a request that HTTP/1.1 allows' },
  too_large: { status: 413, rpcCode: -32015, sentence: 'The request is too large' },
  unsupported_media: { status: 415, rpcCode: -32016, sentence: 'The body is encoded in a way that is not supported' },
  idempotency_key_reused: {
    status: 422,
    rpcCode: -32017,
    sentence: 'This Idempotency-Key was used for another body; use a new key for a new message',
  },
  hop_limit: {
    status: 508,
    rpcCode: -32018,
    sentence: 'This message went round between webhooks too often (klatch-hops): take one of them out of the loop',
  },
  not_found: { status: 404, rpcCode: -32019, sentence: 'There is nothing here: check the address' },
  nick_taken: { status: 409, rpcCode: -32020, sentence: 'This nick is taken' },
  not_member: { status: 403, rpcCode: -32022, sentence: 'Only members of a group can do this' },
  hook_not_restorable: { status: 409, rpcCode: -32023, sentence: 'This reverse webhook cannot be restored' },
  unauthenticated: { status: 401, rpcCode: -32040, sentence: 'Sign in first: there is no valid session token' },
  forbidden: { status: 403, rpcCode: -32041, sentence: 'You may not do this here' },
  missing_scope: {
    status: 403,
    rpcCode: -32042,
    sentence: 'The token of this bot does not have the scope for it: its owner makes one that has it (tokens.create)',
  },
  not_a_group: {
    status: 403,
    rpcCode: -32043,
    sentence:
      'Integration tokens and reverse webhooks are for groups only: a private conversation has none and can get none',
  },
  live_only: {
    status: 400,
    rpcCode: -32044,
    sentence: 'This works on a live connection only (ws://, tcp:// or /v1/live)',
  },
  invalid_code: { status: 403, rpcCode: -32045, sentence: 'This is not the code that was sent' },
  activation_expired: {
    status: 410,
    rpcCode: -32046,
    sentence: 'This sign-in has expired or never began: start it again',
  },
  registration_closed: {
    status: 403,
    rpcCode: -32047,
    sentence: 'Nobody can get an account here without being invited: ask the administrator of this installation',
  },
  provider_unavailable: {
    status: 503,
    rpcCode: -32048,
    sentence: 'The code could not be sent; please repeat it later',
    retryAfterS: 60,
  },
  invalid_invite: {
    status: 410,
    rpcCode: -32049,
    sentence: 'This invitation is no longer valid, or never existed: ask for a new one',
  },
  last_owner: {
    status: 409,
    rpcCode: -32050,
    sentence: 'A group has an owner: hand it over to another member first (groups.transfer), or archive it',
  },
  blocked: { status: 403, rpcCode: -32051, sentence: 'This person does not take messages from you' },
  quota_exceeded: { status: 403, rpcCode: -32052, sentence: 'There are as many of these as there may be' },
  rate_limited: {
    status: 429,
    rpcCode: -32053,
    sentence: 'Too many requests; nothing was done, please repeat it later',
    retryAfterS: 5,
  },
  search_timeout: {
    status: 422,
    rpcCode: -32054,
    sentence: 'This search takes too long: look for rarer words, or in one conversation',
  },
  file_not_found: {
    status: 404,
    rpcCode: -32055,
    sentence: 'There is no such file, or you may not read it: files.list shows your own',
  },
  file_not_attachable: {
    status: 409,
    rpcCode: -32056,
    sentence:
      'This file cannot be attached: it is not complete, not yours, or in another message already; upload it again',
  },
  invalid_link: {
    status: 403,
    rpcCode: -32057,
    sentence:
      'This link to a file is not valid: it has expired, was changed, or belongs to another account; ask for a new one',
  },
  upload_conflict: {
    status: 409,
    rpcCode: -32058,
    sentence: 'The upload has got further, or less far: ask for its offset and go on from there',
  },
  upload_locked: {
    status: 423,
    rpcCode: -32064,
    sentence: 'Another request is writing this upload: repeat yours when that one has ended',
  },
  upload_expired: {
    status: 410,
    rpcCode: -32065,
    sentence: 'This upload no longer exists: it was cancelled, or made no progress for too long. Begin a new upload',
  },
  unsupported_tus_version: {
    status: 412,
    rpcCode: -32066,
    sentence: 'Uploads are resumed by tus 1.0.0: say so with the header Tus-Resumable',
  },
  invalid_range: {
    status: 416,
    rpcCode: -32059,
    sentence: 'The file does not have these bytes: ask for bytes below its size',
  },
  storage_quota_exceeded: {
    status: 413,
    rpcCode: -32060,
    sentence: 'There is no room for this file: remove others first, or ask the administrator',
  },
  too_many_uploads: {
    status: 503,
    rpcCode: -32061,
    sentence: 'Too many uploads are under way; nothing was stored, please repeat it later',
    retryAfterS: 10,
  },
  storage_full: {
    status: 507,
    rpcCode: -32062,
    sentence: 'The store of files is full; nothing was stored. The administrator has to make room',
  },
  storage_unavailable: {
    status: 503,
    rpcCode: -32063,
    sentence: 'The store of files is away; please repeat it later',
    retryAfterS: 10,
  },
  request_timeout: {
    status: 408,
    rpcCode: -32021,
    sentence: 'The request was not complete in time: please send it again',
  },
  overloaded: {
    status: 503,
    rpcCode: -32030,
    sentence: 'The server has too many messages waiting; this one was not posted, please repeat it',
    retryAfterS: 2,
  },
  token_rate_limited: {
    status: 503,
    rpcCode: -32031,
    sentence: 'This token is used faster than it may be; nothing was done, please repeat it later',
    retryAfterS: 5,
  },
  too_many_large_requests: {
    status: 503,
    rpcCode: -32068,
    sentence: 'Too many large requests arrive at the same time; nothing was done, please repeat it later',
    retryAfterS: 2,
  },
  source_rate_limited: {
    status: 503,
    rpcCode: -32067,
    sentence:
      'Requests from your network take too much of the time of the server; nothing was done, please repeat it later',
    retryAfterS: 2,
  },
  signing_changed: {
    status: 503,
    rpcCode: -32070,
    sentence: 'The secret for signatures of this group has just been changed; nothing was posted, please repeat it',
    retryAfterS: 1,
  },
  ping_rate_limited: {
    status: 503,
    rpcCode: -32039,
    sentence: 'A reverse webhook is pinged once in 5 seconds; this ping was not sent, please repeat it later',
    retryAfterS: 5,
  },
  too_many_retries: {
    status: 503,
    rpcCode: -32038,
    sentence: 'This reverse webhook has too many messages to repeat; nothing was done, please repeat it later',
    retryAfterS: 60,
  },
  database_unavailable: {
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
  change_unconfirmed: {
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

/** The last part of the error sentence for a post whose outcome is unknown. */
export const SAFE_REPEAT_HINT = 'Repeating a post is safe with an Idempotency-Key';

export type ErrorCode = keyof typeof errorCatalogue;

/** All error codes with their representation, for documents and tests. */
export const errorKinds: Readonly<Record<ErrorCode, ErrorKind>> = errorCatalogue;

/** An error that is meant for the caller. `message` is the public sentence; `cause` is for the log only. */
export class KlatchError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly rpcCode: number;
  readonly retryAfterS: number | null;

  /** `sentence` replaces the catalogue's sentence if the thrower knows more, such as the field or the limit. */
  constructor(code: ErrorCode, options: { sentence?: string; cause?: unknown } = {}) {
    const kind: ErrorKind = errorCatalogue[code];
    super(options.sentence ?? kind.sentence, { cause: options.cause });
    this.name = 'KlatchError';
    this.code = code;
    this.status = kind.status;
    this.rpcCode = kind.rpcCode;
    this.retryAfterS = kind.retryAfterS ?? null;
  }
}
