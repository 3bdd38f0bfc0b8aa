import { randomBytes } from 'node:crypto';
import type { Caller } from './read-matrix.ts';
import { newDevice, randomPhone, type Situation } from './situation.ts';

/** The call with which a test checks one line of the matrix of rights: an operation, by each kind of caller. */
export interface Call {
  /**
   * Resolves with the input of the call. Before that it prepares everything that the call needs to succeed for
   * permitted callers.
   */
  readonly input: (situation: Situation, caller: Caller) => object | Promise<object>;
  /** True if a successful call changes the situation (people, group, hook), so that the next test needs a new one. */
  readonly changes?: boolean;
}

const fresh = (): string => randomBytes(8).toString('hex');
const ofGroup = ({ group }: Situation): object => ({ group: group.id });
const ofHook = ({ hook }: Situation): object => ({ hook });

const auth: Record<string, Call> = {
  'auth.start': { input: () => ({ address: randomPhone() }) },
  'auth.sign-up': {
    input: async (situation) => ({ transaction: await situation.proven(), nick: `new-${fresh()}` }),
    changes: true,
  },
  'auth.verify': {
    input: async ({ server, people }) =>
      server.operate('accounts.invite', { user: people.outsider.nick }).then(linkOnly),
  },
};

const linkOnly = (answer: unknown): object => ({ link: (answer as { link: string }).link });

const ofBot = ({ people }: Situation): object => ({ bot: people.bot.nick });

const accounts: Record<string, Call> = {
  'sessions.create': { input: () => ({ label: 'new' }) },
  'sessions.list': { input: () => ({}) },
  'sessions.end (own)': {
    input: async (situation, caller) => ({ session: await situation.anotherSession(caller) }),
  },
  "sessions.end (another's)": { input: ({ people }) => ({ session: people.bystander.session }) },
  'sessions.end-others': { input: () => ({}) },
  'profile.show': { input: () => ({}) },
  'profile.update': { input: () => ({ nick: `new-${fresh()}`, name: 'New', about: null }) },
  'accounts.search': { input: () => ({ text: 'a' }) },
  'accounts.search (in the group)': { input: ({ group }) => ({ text: 'a', conversation: group.id }) },
  'accounts.find': { input: ({ people }) => ({ user: people.outsider.nick }) },
  'blocks.add': { input: ({ people }) => ({ user: people.outsider.nick }) },
  'blocks.remove': {
    input: async (situation, caller) => {
      const input = { user: situation.people.outsider.nick };
      await situation.asPerson(caller, 'blocks.add', input);
      return input;
    },
  },
  'blocks.list': { input: () => ({}) },
  'devices.register': { input: () => newDevice() },
  'devices.list': { input: () => ({}) },
  'devices.remove (own)': { input: async (situation, caller) => ({ device: await situation.device(caller) }) },
  "devices.remove (another's)": { input: async (situation) => ({ device: await situation.device('bystander') }) },
  'bots.create': { input: () => ({ nick: `new-${fresh()}` }) },
  'bots.list': { input: () => ({}) },
  "bots.remove (the owner's)": { input: ofBot, changes: true },
  "tokens.create (for the owner's)": {
    input: (situation) => ({ ...ofBot(situation), label: 'new', scopes: ['messages:read'] }),
  },
  "tokens.list (of the owner's)": { input: ofBot },
  "tokens.revoke (of the owner's)": {
    input: (situation) => ({ ...ofBot(situation), token: situation.people.bot.session }),
    changes: true,
  },
};

const users: Record<string, Call> = {
  'accounts.update': { input: ({ people }) => ({ user: people.outsider.nick, name: 'New', admin: true }) },
  'accounts.deactivate': { input: ({ people }) => ({ user: people.outsider.nick }), changes: true },
  'accounts.activate': {
    input: async ({ server, people }) => {
      const input = { user: people.outsider.nick };
      await server.operate('accounts.deactivate', input);
      return input;
    },
    changes: true,
  },
  'accounts.create': { input: () => ({ nick: `new-${fresh()}` }) },
  'accounts.list': { input: () => ({}) },
  'accounts.invite': { input: ({ people }) => ({ user: people.outsider.nick }) },
  'push.status': { input: () => ({}) },
  'push.test': { input: ({ people }) => ({ user: people.outsider.nick }) },
  'server.status': { input: () => ({}) },
};

const ofPrivate = (situation: Situation): object => ({ group: situation.private });
const withUser =
  (role: 'outsider' | 'bystander' | 'owner', more: object = {}) =>
  ({ group, people }: Situation): object => ({ group: group.id, user: people[role].nick, ...more });

const groups: Record<string, Call> = {
  'groups.create': { input: () => ({ title: 'New' }) },
  'groups.create (for another)': { input: ({ people }) => ({ title: 'New', owner: people.outsider.nick }) },
  'groups.update': { input: ({ group }) => ({ group: group.id, title: 'Other', about: 'x' }) },
  'groups.info': { input: ofGroup },
  'groups.list-all': { input: () => ({}) },
  'groups.archive': { input: ofGroup, changes: true },
  'groups.unarchive': {
    input: async (situation) => {
      await situation.server.operate('groups.archive', ofGroup(situation));
      return ofGroup(situation);
    },
    changes: true,
  },
  'groups.find': { input: () => ({ text: 'Situation' }) },
  'groups.show-token': { input: ofGroup },
  'groups.show-token (privately)': { input: ofPrivate },
  'groups.rotate-token': { input: ofGroup, changes: true },
  'groups.rotate-token (privately)': { input: ofPrivate },
  'groups.show-incoming-secret': { input: ofGroup },
  'groups.show-incoming-secret (privately)': { input: ofPrivate },
  'groups.set-incoming-secret': { input: ofGroup, changes: true },
  'groups.set-incoming-secret (privately)': { input: ofPrivate },
  'groups.remove-incoming-secret': {
    input: async (situation) => {
      await situation.server.operate('groups.set-incoming-secret', ofGroup(situation));
      return ofGroup(situation);
    },
    changes: true,
  },
  'groups.remove-incoming-secret (privately)': { input: ofPrivate },
};

const members: Record<string, Call> = {
  'groups.members': { input: ofGroup },
  'groups.add-member': { input: withUser('outsider'), changes: true },
  'groups.add-member (as an admin)': { input: withUser('outsider', { role: 'admin' }), changes: true },
  'groups.add-member (as the owner)': { input: withUser('outsider', { role: 'owner' }), changes: true },
  'groups.remove-member': { input: withUser('bystander'), changes: true },
  'groups.remove-member (an admin)': {
    input: async (situation) => {
      await situation.server.operate('groups.add-member', withUser('bystander', { role: 'admin' })(situation));
      return withUser('bystander')(situation);
    },
    changes: true,
  },
  'groups.remove-member (the owner)': { input: withUser('owner'), changes: true },
  'groups.remove-member (with a new token)': { input: withUser('bystander', { rotate_token: true }), changes: true },
  'groups.add-member (the owner as an admin)': { input: withUser('owner', { role: 'admin' }) },
  'groups.set-role (of the owner)': { input: withUser('owner', { role: 'admin' }) },
  'groups.set-role': { input: withUser('bystander', { role: 'admin' }), changes: true },
  'groups.transfer': { input: withUser('bystander'), changes: true },
  'groups.leave': { input: ofGroup, changes: true },
  'groups.leave (with a new token)': { input: (at) => ({ ...ofGroup(at), rotate_token: true }), changes: true },
  'groups.join (a public one)': {
    input: async (situation) => {
      await situation.server.operate('groups.update', { ...ofGroup(situation), public: true });
      return ofGroup(situation);
    },
    changes: true,
  },
  'groups.join (one that is not)': { input: ofGroup, changes: true },
  'groups.join (by an invitation)': {
    input: async (situation) => ({ invite: (await situation.invite()).link }),
    changes: true,
  },
  'groups.join (privately)': { input: ofPrivate, changes: true },
  'invites.create': { input: ofGroup },
  'invites.create (privately)': { input: ofPrivate },
  'invites.list': { input: ofGroup },
  'invites.revoke': {
    input: async (situation) => ({ ...ofGroup(situation), invite: (await situation.invite()).id }),
  },
  "invites.revoke (another group's)": {
    input: async (situation) => {
      const other = await situation.server.createGroup('Other');
      const { id } = await situation.invite(other.id);
      return { ...ofGroup(situation), invite: id };
    },
  },
  'invites.preview': { input: async (situation) => ({ invite: (await situation.invite()).link }) },
  'expectations.set': { input: (at) => ({ ...ofGroup(at), key: 'backup', within: '26h' }) },
  'expectations.set (privately)': { input: (at) => ({ ...ofPrivate(at), key: 'backup', within: '26h' }) },
  'expectations.list': { input: ofGroup },
  'expectations.remove': {
    input: async (situation) => {
      const input = { ...ofGroup(situation), key: 'backup' };
      await situation.server.operate('expectations.set', { ...input, within: '26h' });
      return input;
    },
  },
  'private.open': { input: ({ people }) => ({ user: people.outsider.nick }) },
  'conversations.list': { input: () => ({}) },
  'conversations.show': { input: ({ group }) => ({ conversation: group.id }) },
  'conversations.show (privately)': { input: (situation) => ({ conversation: situation.private }) },
  'notifications.update': { input: ({ group }) => ({ conversation: group.id, level: 'mentions' }) },
  'notifications.update (privately)': {
    input: (situation) => ({ conversation: situation.private, muted_until: '2090-01-01T00:00:00Z' }),
  },
};

const hooks: Record<string, Call> = {
  'hooks.create': {
    input: ({ group }) => ({
      group: group.id,
      url: `https://receiver.example/${fresh()}`,
      events: ['message.updated', 'message.deleted'],
    }),
  },
  'hooks.create (privately)': {
    input: (situation) => ({ group: situation.private, url: 'https://receiver.example/' }),
  },
  'hooks.list': { input: ofGroup },
  'hooks.list (privately)': { input: ofPrivate },
  'hooks.list-managed': { input: () => ({}) },
  'hooks.list-all': { input: () => ({}) },
  'hooks.info': { input: ofHook },
  'hooks.log': { input: ofHook },
  'hooks.stats': { input: ofHook },
  'hooks.update': { input: ({ hook }) => ({ hook, paused: true, events: ['message.deleted'] }), changes: true },
  'hooks.ping': { input: ofHook, changes: true },
  'hooks.example': { input: ofHook },
  'hooks.redeliver': { input: ({ hook, group }) => ({ hook, from: `${group.id}:1` }), changes: true },
  'hooks.discard-backlog': { input: ofHook, changes: true },
  'hooks.remove': { input: ofHook, changes: true },
  'hooks.restore': {
    input: async (situation) => {
      await situation.removeHook();
      return ofHook(situation);
    },
    changes: true,
  },
};

const messages: Record<string, Call> = {
  'messages.send': { input: ({ group }) => ({ conversation: group.id, text: 'x' }) },
  'messages.send (privately)': { input: (situation) => ({ conversation: situation.private, text: 'x' }) },
  'messages.send (for another)': {
    input: ({ group, people }) => ({ conversation: group.id, text: 'x', as: people.bystander.nick }),
  },
  'messages.history': { input: ({ group }) => ({ conversation: group.id }) },
  'messages.history (privately)': { input: (situation) => ({ conversation: situation.private }) },
  'messages.edit (own)': {
    input: async (situation, caller) => ({
      conversation: situation.group.id,
      seq: await situation.ownMessage(caller),
      text: 'y',
    }),
  },
  "messages.edit (another's)": {
    input: async (situation) => ({
      conversation: situation.group.id,
      seq: await situation.post('bystander'),
      text: 'y',
    }),
  },
  'messages.delete (own)': {
    input: async (situation, caller) => ({
      conversation: situation.group.id,
      seq: await situation.ownMessage(caller),
    }),
  },
  "messages.delete (another's)": {
    input: async (situation) => ({ conversation: situation.group.id, seq: await situation.post('bystander') }),
  },
  'messages.mark-read': { input: ({ group }) => ({ conversation: group.id, seq: 1 }) },
  'messages.mark-read (privately)': {
    input: async (situation) => ({ conversation: situation.private, seq: await situation.postPrivately() }),
  },
  'messages.typing': { input: ({ group }) => ({ conversation: group.id }) },
  'messages.typing (privately)': { input: (situation) => ({ conversation: situation.private }) },
  'mentions.list': { input: ({ group }) => ({ conversation: group.id }) },
  'mentions.list (privately)': { input: (situation) => ({ conversation: situation.private }) },
  'messages.search': { input: () => ({ text: 'x' }) },
  'messages.search (in the group)': { input: ({ group }) => ({ text: 'x', conversation: group.id }) },
  'messages.search (privately)': { input: (situation) => ({ text: 'x', conversation: situation.private }) },
  'messages.search (behind a private message)': {
    input: async (situation) => ({ text: 'x', before: `${situation.private}:${await situation.postPrivately()}` }),
  },
  'conversations.sync': { input: ({ group }) => ({ conversation: group.id, after_rev: 0 }) },
  'conversations.sync (privately)': { input: (situation) => ({ conversation: situation.private, after_rev: 0 }) },
};

const files: Record<string, Call> = {
  'files.link (own)': { input: async (situation, caller) => ({ file: await situation.file(ownerOf(caller)) }) },
  "files.link (another's)": { input: async (situation) => ({ file: await situation.file('bystander') }) },
  'files.link (of a message)': {
    input: async (situation) => ({ file: await situation.file('bystander', situation.group.id) }),
  },
  'files.link (of a private message)': {
    input: async (situation) => ({ file: await situation.file('owner', situation.private) }),
  },
  'files.list': { input: () => ({}) },
  'files.remove (own)': { input: async (situation, caller) => ({ file: await situation.file(ownerOf(caller)) }) },
  "files.remove (another's)": { input: async (situation) => ({ file: await situation.file('bystander') }) },
  'files.remove (own, in a message)': {
    input: async (situation, caller) => ({ file: await situation.file(ownerOf(caller), situation.group.id) }),
  },
};

/** The account whose objects the call uses. An anonymous caller has none, so the member's are used. */
const ownerOf = (caller: Caller): Exclude<Caller, 'anonymous'> => (caller === 'anonymous' ? 'member' : caller);

const live: Record<string, Call> = {
  'presence.list': { input: ({ group }) => ({ conversation: group.id }) },
  'presence.list (privately)': { input: (situation) => ({ conversation: situation.private }) },
  'live.authenticate': { input: ({ people }) => ({ token: people.member.token }) },
  'live.subscribe': { input: () => ({}) },
  'live.foreground': { input: () => ({ foreground: false }) },
  'live.ping': { input: () => ({}) },
};

/** By label of a line in the matrix of rights: the call that checks it. */
export const calls: Readonly<Record<string, Call>> = {
  ...auth,
  ...accounts,
  ...users,
  ...groups,
  ...members,
  ...hooks,
  ...messages,
  ...files,
  ...live,
};
