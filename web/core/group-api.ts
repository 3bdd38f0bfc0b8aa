import {
  arrayOf,
  boolean,
  integer,
  nullable,
  objectWithAtLeast,
  string,
  type Decoded,
} from '../../client/core/decode.ts';
import type { OperationCaller } from './people/operation-caller.ts';

const MEMBERS_OF_PAGE = 200;
/**
 * The `limit` of a request for the list of open invitations. By default a group can have 100 open invitations
 * (`limits.invites-per-group`), so that one answer contains all.
 */
const MAX_LISTED_INVITES = 1_000;
/** In a search for a nick, the number of members that the page requests at once: the maximum that the server sends. */
const MEMBERS_PER_SEARCH_PAGE = 1_000;
/**
 * A search for a nick reads at most this number of pages, each of 1,000 members. By default a group can have 10,000
 * members (`limits.members-per-group`).
 */
const MAX_SEARCH_PAGES = 10;

const decodeMember = objectWithAtLeast({ id: integer, nick: string, name: string, kind: string, role: string });
const decodeMemberPage = objectWithAtLeast({ members: arrayOf(decodeMember), next: nullable(string) });
const decodeInvite = objectWithAtLeast({
  id: integer,
  link: string,
  created_by: nullable(string),
  expires_at: nullable(string),
  max_uses: nullable(integer),
  uses: integer,
});
const decodeInvites = objectWithAtLeast({ invites: arrayOf(decodeInvite) });
const decodeGroup = objectWithAtLeast({ group: integer });
const decodeUpdated = objectWithAtLeast({ id: integer, changed: boolean });
const decodeNotifications = objectWithAtLeast({ level: string, muted_until: nullable(string) });

/** A member of a group. */
export type Member = Decoded<typeof decodeMember>;
/** An open invitation. */
export type Invite = Decoded<typeof decodeInvite>;

/** The fields of a group that a person can change. */
interface GroupDescription {
  readonly title: string;
  readonly about: string | null;
  readonly public: boolean;
}

/** The messages of a conversation that the account is notified of. */
export interface NotificationSetting {
  readonly level?: 'all' | 'mentions' | 'nothing';
  /** ISO 8601; null: not muted. */
  readonly muted_until?: string | null;
}

/** The operations on a group and its members. They reject with ServerError and ConnectionError. */
export class GroupApi {
  readonly #api: OperationCaller;
  readonly #group: number;

  constructor(api: OperationCaller, group: number) {
    this.#api = api;
    this.#group = group;
  }

  /**
   * A page of members in the order of their nicks, after the nick `after`; null: from the first nick on. `next`: the
   * value of `after` for the next page; null: there is none.
   */
  members(after: string | null): Promise<{ members: Member[]; next: string | null }> {
    const input = { group: this.#group, limit: MEMBERS_OF_PAGE, ...(after === null ? {} : { after }) };
    return this.#api.call('groups.members', input, decodeMemberPage);
  }

  /** The member with a nick, or null. */
  async memberByNick(nick: string): Promise<Member | null> {
    // The list is in the order of nicks. A prefix of the nick as `after` skips most of the members before it.
    let after: string | null = nick.slice(0, -1);
    for (let page = 0; page < MAX_SEARCH_PAGES && after !== null; page += 1) {
      const input = { group: this.#group, limit: MEMBERS_PER_SEARCH_PAGE, after };
      const answer: Decoded<typeof decodeMemberPage> = await this.#api.call('groups.members', input, decodeMemberPage);
      const found = answer.members.find((member) => member.nick === nick);
      if (found !== undefined) return found;
      after = answer.next;
    }
    return null;
  }

  async addMember(user: number): Promise<void> {
    await this.#api.call('groups.add-member', { group: this.#group, user }, decodeGroup);
  }

  async removeMember(user: number): Promise<void> {
    await this.#api.call('groups.remove-member', { group: this.#group, user }, decodeGroup);
  }

  async setRole(user: number, role: 'admin' | 'member'): Promise<void> {
    await this.#api.call('groups.set-role', { group: this.#group, user, role }, decodeGroup);
  }

  async transferOwnership(user: number): Promise<void> {
    await this.#api.call('groups.transfer', { group: this.#group, user }, decodeGroup);
  }

  async update(description: GroupDescription): Promise<void> {
    await this.#api.call('groups.update', { group: this.#group, ...description }, decodeUpdated);
  }

  async setArchived(isArchived: boolean): Promise<void> {
    await this.#api.call(isArchived ? 'groups.archive' : 'groups.unarchive', { group: this.#group }, decodeGroup);
  }

  async leave(): Promise<void> {
    await this.#api.call('groups.leave', { group: this.#group }, decodeGroup);
  }

  async invites(): Promise<Invite[]> {
    return (await this.#api.call('invites.list', { group: this.#group, limit: MAX_LISTED_INVITES }, decodeInvites))
      .invites;
  }

  /** `validS`: seconds, null: no time limit. `maxUses` null: no limit of uses. */
  createInvite(validS: number | null, maxUses: number | null): Promise<Invite> {
    const input = { group: this.#group, valid_s: validS, max_uses: maxUses };
    return this.#api.call('invites.create', input, decodeInvite);
  }

  async revokeInvite(invite: number): Promise<void> {
    await this.#api.call('invites.revoke', { group: this.#group, invite }, decodeGroup);
  }

  /** Changes the notification setting of the group; also works for a private conversation. */
  async setNotifications(setting: NotificationSetting): Promise<void> {
    await this.#api.call('notifications.update', { conversation: this.#group, ...setting }, decodeNotifications);
  }
}
