import {
  arrayOf,
  boolean,
  integer,
  nullable,
  objectWithAtLeast,
  string,
  type Decoded,
} from '../../../client/core/decode.ts';
import type { OperationCaller } from './operation-caller.ts';

const GROUPS_OF_PAGE = 20;
/** Finds the token of an invitation: 256 random bits in base64url, after the last slash of a link or after a #. */
const INVITE_TOKEN_AT_END = /(?:^|[/#])([A-Za-z0-9_-]{43})\/?$/;

const decodePublicGroup = objectWithAtLeast({
  id: integer,
  title: string,
  about: nullable(string),
  members: integer,
  joined: boolean,
});
const decodeGroupPage = objectWithAtLeast({ groups: arrayOf(decodePublicGroup), next: nullable(integer) });
const decodeCreated = objectWithAtLeast({ id: integer });
const decodeJoined = objectWithAtLeast({ group: integer, joined: boolean });
const decodePreview = objectWithAtLeast({
  group: objectWithAtLeast({ title: string, about: nullable(string), members: integer }),
  invited_by: nullable(string),
  expires_at: nullable(string),
});

/** A group that everybody may join. */
export type PublicGroup = Decoded<typeof decodePublicGroup>;
/** The group of an invitation. */
export type InvitePreview = Decoded<typeof decodePreview>;

interface NewGroup {
  readonly title: string;
  /** Null: no description. */
  readonly about: string | null;
  readonly public: boolean;
}

/** The token of an invitation in a link that somebody pasted, or null. */
export function inviteTokenIn(text: string): string | null {
  return INVITE_TOKEN_AT_END.exec(text.trim())?.[1] ?? null;
}

/**
 * The operations by which an account finds, creates and joins groups. They reject with ServerError and ConnectionError.
 */
export class DirectoryApi {
  readonly #api: OperationCaller;

  constructor(api: OperationCaller) {
    this.#api = api;
  }

  /**
   * Public groups with a text in their title; all public groups for an empty text. `after`: `next` of the previous
   * page, or 0.
   */
  findGroups(text: string, after: number): Promise<{ groups: PublicGroup[]; next: number | null }> {
    return this.#api.call('groups.find', { text, after, limit: GROUPS_OF_PAGE }, decodeGroupPage);
  }

  async createGroup({ about, ...group }: NewGroup): Promise<number> {
    const input = about === null ? group : { ...group, about };
    return (await this.#api.call('groups.create', input, decodeCreated)).id;
  }

  async joinPublicGroup(group: number): Promise<number> {
    return (await this.#api.call('groups.join', { group }, decodeJoined)).group;
  }

  /** `invite`: the token of an invitation. Needs no session. */
  previewInvite(invite: string): Promise<InvitePreview> {
    return this.#api.call('invites.preview', { invite }, decodePreview);
  }

  /** `joined` is false if the account was already in the group. */
  joinByInvite(invite: string): Promise<{ group: number; joined: boolean }> {
    return this.#api.call('groups.join', { invite }, decodeJoined);
  }
}
