/** Rights that a bot's token can have. A person's session has no scopes: it has every right. */
export const scopes = [
  'messages:read',
  'messages:write',
  'groups:read',
  'groups:write',
  'hooks:manage',
  'account',
] as const;
export type Scope = (typeof scopes)[number];

/** The meaning of each scope, for documents. */
export const scopeMeanings: Readonly<Record<Scope, string>> = {
  'messages:read': 'read messages, search them, follow conversations live',
  'messages:write': 'send messages, change and delete its own, move its read position',
  'groups:read': 'list groups and their members, without integrations',
  'groups:write': 'make groups, change them, add and remove members, invite, join and leave',
  'hooks:manage': 'see integration tokens and manage reverse webhooks, where the bot is owner or admin of the group',
  account: "change the bot's own profile, end its sessions",
};
