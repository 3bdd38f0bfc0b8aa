import {
  arrayOf,
  integer,
  nullable,
  objectWithAtLeast,
  optional,
  string,
  type Decoded,
} from '../../../client/core/decode.ts';
import type { OperationCaller } from '../people/operation-caller.ts';

const decodeToken = objectWithAtLeast({
  webhook: string,
  last_post_at: nullable(string),
  posts_last_day: integer,
});
const decodeAddress = objectWithAtLeast({
  name: string,
  values: arrayOf(objectWithAtLeast({ name: string, value: string })),
  programs: arrayOf(string),
});
const decodeRefusedPosts = objectWithAtLeast({
  first_at: string,
  last_at: string,
  posts: integer,
  user_agent: nullable(string),
  format: nullable(string),
  code: string,
  sentence: string,
});
const decodeGroup = objectWithAtLeast({
  addresses: optional(arrayOf(decodeAddress)),
  refused_posts: optional(arrayOf(decodeRefusedPosts)),
});
const decodeRotated = objectWithAtLeast({ webhook: string });

/** An address of the group for one kind of program, with the values to paste there. */
export type ProgramAddress = Decoded<typeof decodeAddress>;
/** Refused posts with the same reason. */
export type RefusedPosts = Decoded<typeof decodeRefusedPosts>;

/** The address at which programs post into a group, and its use. */
export interface IntegrationState {
  /** The URL, which contains the token. */
  readonly webhook: string;
  /** ISO 8601; null: no program has posted yet. */
  readonly lastPostAt: string | null;
  readonly postsOfLastDay: number;
  readonly addresses: readonly ProgramAddress[];
  readonly refused: readonly RefusedPosts[];
}

/** The operations on the integration of a group. They reject with ServerError and ConnectionError. */
export class IntegrationApi {
  readonly #api: OperationCaller;
  readonly #group: number;

  constructor(api: OperationCaller, group: number) {
    this.#api = api;
    this.#group = group;
  }

  async read(): Promise<IntegrationState> {
    const [token, group] = await Promise.all([
      this.#api.call('groups.show-token', { group: this.#group }, decodeToken),
      this.#api.call('groups.info', { group: this.#group }, decodeGroup),
    ]);
    return {
      webhook: token.webhook,
      lastPostAt: token.last_post_at,
      postsOfLastDay: token.posts_last_day,
      addresses: group.addresses ?? [],
      refused: group.refused_posts ?? [],
    };
  }

  /** Replaces the token: every address of the group stops working at once. */
  async rotateToken(): Promise<void> {
    await this.#api.call('groups.rotate-token', { group: this.#group }, decodeRotated);
  }
}

/** Posts a message as a program would. Resolves to the answer of the server; rejects without a connection. */
export async function postTestMessage(webhook: string, text: string): Promise<{ isAccepted: boolean; status: number }> {
  const response = await fetch(webhook, {
    method: 'POST',
    headers: { 'content-type': 'text/plain; charset=utf-8' },
    body: text,
    credentials: 'omit',
  });
  return { isAccepted: response.ok, status: response.status };
}
