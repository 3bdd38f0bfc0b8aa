/** The kinds of callers, the columns of the matrix, with their meanings. */
export const callerMeanings = {
  anonymous: 'without a token',
  stranger: 'a person who was never in the group',
  former: 'a person who was removed from it',
  member: 'a person who is in it',
  admin: 'an admin of the group',
  owner: 'its owner',
  administrator: 'an administrator of the installation who is not in the group',
  bot: 'a member that is a bot, its token with the scope that the operation needs',
  unscoped: 'a member that is a bot, its token with every scope but that one',
} as const;

/**
 * The rights of every kind of caller, written by hand: the intended rights, not those that the server happens to grant.
 * - A line is an operation, with its object if that matters.
 * - A cell is `yes` or the error code.
 * - A line "private" is about a private conversation of the owner and the member.
 * - For an operation without a scope, one bot has all scopes and the other none.
 *
 * The tests of test/access check every cell against a server, and docs/access.md is generated from this file.
 */
export const matrix = `
                                           | anonymous       | stranger  | former    | member      | admin          | owner          | administrator  | bot       | unscoped
auth.start                                 | yes             | yes       | yes       | yes         | yes            | yes            | yes            | yes       | yes
auth.verify                                | yes             | yes       | yes       | yes         | yes            | yes            | yes            | yes       | yes
auth.sign-up                               | yes             | yes       | yes       | yes         | yes            | yes            | yes            | yes       | yes
sessions.create                            | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | forbidden | forbidden
sessions.list                              | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | yes       | missing_scope
sessions.end (own)                         | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | yes       | missing_scope
sessions.end (another's)                   | unauthenticated | not_found | not_found | not_found   | not_found      | not_found      | not_found      | not_found | missing_scope
sessions.end-others                        | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | yes       | missing_scope
profile.show                               | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | yes       | missing_scope
profile.update                             | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | yes       | missing_scope
accounts.find                              | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | yes       | missing_scope
accounts.search                            | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | yes       | missing_scope
accounts.search (in the group)             | unauthenticated | not_found | not_found | yes         | yes            | yes            | not_found      | yes       | missing_scope
blocks.add                                 | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | forbidden | forbidden
blocks.remove                              | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | forbidden | forbidden
blocks.list                                | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | forbidden | forbidden
devices.register                           | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | forbidden | forbidden
devices.list                               | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | forbidden | forbidden
devices.remove (own)                       | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | forbidden | forbidden
devices.remove (another's)                 | unauthenticated | not_found | not_found | not_found   | not_found      | not_found      | not_found      | forbidden | forbidden
bots.create                                | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | forbidden | forbidden
bots.list                                  | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | forbidden | forbidden
bots.remove (the owner's)                  | unauthenticated | not_found | not_found | not_found   | not_found      | yes            | not_found      | forbidden | forbidden
tokens.create (for the owner's)            | unauthenticated | not_found | not_found | not_found   | not_found      | yes            | not_found      | forbidden | forbidden
tokens.list (of the owner's)               | unauthenticated | not_found | not_found | not_found   | not_found      | yes            | not_found      | forbidden | forbidden
tokens.revoke (of the owner's)             | unauthenticated | not_found | not_found | not_found   | not_found      | yes            | not_found      | forbidden | forbidden
accounts.create                               | unauthenticated | forbidden | forbidden | forbidden   | forbidden      | forbidden      | yes            | forbidden | forbidden
accounts.list                                 | unauthenticated | forbidden | forbidden | forbidden   | forbidden      | forbidden      | yes            | forbidden | forbidden
accounts.invite                               | unauthenticated | forbidden | forbidden | forbidden   | forbidden      | forbidden      | yes            | forbidden | forbidden
accounts.update                               | unauthenticated | forbidden | forbidden | forbidden   | forbidden      | forbidden      | yes            | forbidden | forbidden
accounts.deactivate                           | unauthenticated | forbidden | forbidden | forbidden   | forbidden      | forbidden      | yes            | forbidden | forbidden
accounts.activate                             | unauthenticated | forbidden | forbidden | forbidden   | forbidden      | forbidden      | yes            | forbidden | forbidden
groups.create                              | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | yes       | missing_scope
groups.create (for another)                | unauthenticated | forbidden | forbidden | forbidden   | forbidden      | forbidden      | yes            | forbidden | missing_scope
groups.update                              | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
groups.info                                | unauthenticated | not_found | not_found | yes         | yes            | yes            | yes            | yes       | missing_scope
groups.list-all                                | unauthenticated | forbidden | forbidden | forbidden   | forbidden      | forbidden      | yes            | forbidden | forbidden
groups.archive                             | unauthenticated | not_found | not_found | forbidden   | forbidden      | yes            | yes            | forbidden | missing_scope
groups.unarchive                           | unauthenticated | not_found | not_found | forbidden   | forbidden      | yes            | yes            | forbidden | missing_scope
groups.members                             | unauthenticated | not_found | not_found | yes         | yes            | yes            | yes            | yes       | missing_scope
groups.add-member                          | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
groups.add-member (as an admin)            | unauthenticated | not_found | not_found | forbidden   | forbidden      | yes            | yes            | forbidden | missing_scope
groups.add-member (as the owner)           | unauthenticated | not_found | not_found | forbidden   | forbidden      | forbidden      | yes            | forbidden | missing_scope
groups.add-member (the owner as an admin)  | unauthenticated | not_found | not_found | forbidden   | forbidden      | forbidden      | last_owner     | forbidden | missing_scope
groups.remove-member                       | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
groups.remove-member (an admin)            | unauthenticated | not_found | not_found | forbidden   | forbidden      | yes            | yes            | forbidden | missing_scope
groups.remove-member (the owner)           | unauthenticated | not_found | not_found | forbidden   | forbidden      | forbidden      | yes            | forbidden | missing_scope
groups.remove-member (with a new token)    | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
groups.set-role                            | unauthenticated | not_found | not_found | forbidden   | forbidden      | yes            | yes            | forbidden | missing_scope
groups.set-role (of the owner)             | unauthenticated | not_found | not_found | forbidden   | forbidden      | last_owner     | last_owner     | forbidden | missing_scope
groups.transfer                            | unauthenticated | not_found | not_found | forbidden   | forbidden      | yes            | yes            | forbidden | missing_scope
groups.leave                               | unauthenticated | not_found | not_found | yes         | yes            | last_owner     | not_member     | yes       | missing_scope
groups.leave (with a new token)            | unauthenticated | not_found | not_found | forbidden   | yes            | last_owner     | not_member     | missing_scope | missing_scope
groups.find                                | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | yes       | missing_scope
groups.join (a public one)                 | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | yes       | missing_scope
groups.join (one that is not)              | unauthenticated | not_found | not_found | yes         | yes            | yes            | not_found      | yes       | missing_scope
groups.join (by an invitation)             | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | yes       | missing_scope
groups.join (privately)                    | unauthenticated | not_found | not_found | not_found   | not_found      | not_found      | not_found      | not_found | missing_scope
invites.create                             | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
invites.create (privately)                 | unauthenticated | not_found | not_found | not_a_group | not_found      | not_a_group    | not_found      | not_found | missing_scope
invites.list                               | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
invites.revoke                             | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
invites.revoke (another group's)           | unauthenticated | not_found | not_found | forbidden   | invalid_invite | invalid_invite | invalid_invite | forbidden | missing_scope
invites.preview                            | yes             | yes       | yes       | yes         | yes            | yes            | yes            | yes       | yes
groups.show-token                               | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
groups.show-token (privately)                   | unauthenticated | not_found | not_found | not_a_group | not_found      | not_a_group    | not_found      | not_found | missing_scope
groups.rotate-token                        | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
groups.rotate-token (privately)            | unauthenticated | not_found | not_found | not_a_group | not_found      | not_a_group    | not_found      | not_found | missing_scope
expectations.set                           | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
expectations.set (privately)               | unauthenticated | not_found | not_found | not_a_group | not_found      | not_a_group    | not_found      | not_found | missing_scope
expectations.list                          | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
expectations.remove                        | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
groups.show-incoming-secret                | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
groups.show-incoming-secret (privately)    | unauthenticated | not_found | not_found | not_a_group | not_found      | not_a_group    | not_found      | not_found | missing_scope
groups.set-incoming-secret                 | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
groups.set-incoming-secret (privately)     | unauthenticated | not_found | not_found | not_a_group | not_found      | not_a_group    | not_found      | not_found | missing_scope
groups.remove-incoming-secret              | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
groups.remove-incoming-secret (privately)  | unauthenticated | not_found | not_found | not_a_group | not_found      | not_a_group    | not_found      | not_found | missing_scope
private.open                               | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | yes       | missing_scope
conversations.list                         | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | yes       | missing_scope
conversations.show                         | unauthenticated | not_found | not_found | yes         | yes            | yes            | not_found      | yes       | missing_scope
conversations.show (privately)             | unauthenticated | not_found | not_found | yes         | not_found      | yes            | not_found      | not_found | missing_scope
notifications.update                       | unauthenticated | not_found | not_found | yes         | yes            | yes            | not_found      | missing_scope | missing_scope
notifications.update (privately)           | unauthenticated | not_found | not_found | yes         | not_found      | yes            | not_found      | missing_scope | missing_scope
hooks.create                               | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
hooks.create (privately)                   | unauthenticated | not_found | not_found | not_a_group | not_found      | not_a_group    | not_found      | not_found | missing_scope
hooks.list                                 | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
hooks.list (privately)                     | unauthenticated | not_found | not_found | not_a_group | not_found      | not_a_group    | not_found      | not_found | missing_scope
hooks.list-managed                         | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | yes       | missing_scope
hooks.list-all                             | unauthenticated | forbidden | forbidden | forbidden   | forbidden      | forbidden      | yes            | forbidden | forbidden
hooks.info                                 | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
hooks.log                                  | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
hooks.stats                                | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
hooks.update                               | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
hooks.ping                                 | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
hooks.example                              | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
hooks.redeliver                            | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
hooks.discard-backlog                                 | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
hooks.remove                               | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
hooks.restore                              | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | yes            | forbidden | missing_scope
messages.send                              | unauthenticated | not_found | not_found | yes         | yes            | yes            | not_found      | yes       | missing_scope
messages.send (privately)                  | unauthenticated | not_found | not_found | yes         | not_found      | yes            | not_found      | not_found | missing_scope
messages.send (for another)                | unauthenticated | not_found | not_found | forbidden   | forbidden      | forbidden      | not_found      | forbidden | missing_scope
messages.history                           | unauthenticated | not_found | not_found | yes         | yes            | yes            | not_found      | yes       | missing_scope
messages.history (privately)               | unauthenticated | not_found | not_found | yes         | not_found      | yes            | not_found      | not_found | missing_scope
messages.edit (own)                        | unauthenticated | not_found | not_found | yes         | yes            | yes            | not_found      | yes       | missing_scope
messages.edit (another's)                  | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | not_found      | forbidden | missing_scope
messages.delete (own)                      | unauthenticated | not_found | not_found | yes         | yes            | yes            | not_found      | yes       | missing_scope
messages.delete (another's)                | unauthenticated | not_found | not_found | forbidden   | yes            | yes            | not_found      | forbidden | missing_scope
messages.mark-read                              | unauthenticated | not_found | not_found | yes         | yes            | yes            | not_found      | yes       | missing_scope
messages.mark-read (privately)                  | unauthenticated | not_found | not_found | yes         | not_found      | yes            | not_found      | not_found | missing_scope
messages.typing                            | unauthenticated | not_found | not_found | yes         | yes            | yes            | not_found      | yes       | missing_scope
messages.typing (privately)                | unauthenticated | not_found | not_found | yes         | not_found      | yes            | not_found      | not_found | missing_scope
messages.search                            | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | yes       | missing_scope
messages.search (in the group)             | unauthenticated | not_found | not_found | yes         | yes            | yes            | not_found      | yes       | missing_scope
messages.search (privately)                | unauthenticated | not_found | not_found | yes         | not_found      | yes            | not_found      | not_found | missing_scope
messages.search (behind a private message) | unauthenticated | not_found | not_found | yes         | not_found      | yes            | not_found      | not_found | missing_scope
mentions.list                              | unauthenticated | not_found | not_found | yes         | yes            | yes            | not_found      | yes       | missing_scope
mentions.list (privately)                  | unauthenticated | not_found | not_found | yes         | not_found      | yes            | not_found      | not_found | missing_scope
conversations.sync                               | unauthenticated | not_found | not_found | yes         | yes            | yes            | not_found      | yes       | missing_scope
conversations.sync (privately)                   | unauthenticated | not_found | not_found | yes         | not_found      | yes            | not_found      | not_found | missing_scope
files.link (own)                           | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | yes       | missing_scope
files.link (another's)                     | unauthenticated | file_not_found | file_not_found | file_not_found | file_not_found | file_not_found | file_not_found | file_not_found | missing_scope
files.link (of a message)                  | unauthenticated | file_not_found | file_not_found | yes         | yes            | yes            | file_not_found | yes       | missing_scope
files.link (of a private message)          | unauthenticated | file_not_found | file_not_found | yes         | file_not_found | yes            | file_not_found | file_not_found | missing_scope
files.list                                 | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | yes       | missing_scope
files.remove (own)                         | unauthenticated | yes       | yes       | yes         | yes            | yes            | yes            | yes       | missing_scope
files.remove (another's)                   | unauthenticated | file_not_found | file_not_found | file_not_found | file_not_found | file_not_found | file_not_found | file_not_found | missing_scope
files.remove (own, in a message)           | unauthenticated | file_not_found | file_not_found | file_not_found | file_not_found | file_not_found | file_not_found | file_not_found | missing_scope
presence.list                              | unauthenticated | not_found | not_found | yes         | yes            | yes            | not_found      | yes       | missing_scope
presence.list (privately)                  | unauthenticated | not_found | not_found | yes         | not_found      | yes            | not_found      | not_found | missing_scope
live.authenticate                          | live_only       | live_only | live_only | live_only   | live_only      | live_only      | live_only      | live_only | live_only
live.subscribe                                | unauthenticated | live_only | live_only | live_only   | live_only      | live_only      | live_only      | live_only | missing_scope
live.foreground                            | unauthenticated | live_only | live_only | live_only   | live_only      | live_only      | live_only      | forbidden | forbidden
live.ping                                  | live_only       | live_only | live_only | live_only   | live_only      | live_only      | live_only      | live_only | live_only
push.status                                | unauthenticated | forbidden | forbidden | forbidden   | forbidden      | forbidden      | yes            | forbidden | forbidden
push.test                                  | unauthenticated | forbidden | forbidden | forbidden   | forbidden      | forbidden      | yes            | forbidden | forbidden
server.status                              | unauthenticated | forbidden | forbidden | forbidden   | forbidden      | forbidden      | yes            | forbidden | forbidden
`;

/**
 * The scope that a bot's token needs for an operation, also written by hand. The tests give their bots the scopes of
 * this table, and do not read them from the tested code. `none`: no token of a bot suffices, or no scope is needed.
 */
export const scopesByHand = `
messages:read  | conversations.list conversations.show messages.history messages.search conversations.sync live.subscribe
messages:read  | files.link files.list mentions.list
messages:write | messages.send messages.edit messages.delete messages.mark-read messages.typing private.open files.remove
groups:read    | groups.info groups.members groups.find accounts.find accounts.search presence.list expectations.list
groups:write   | groups.create groups.update groups.archive groups.unarchive groups.add-member groups.remove-member
groups:write   | groups.set-role groups.transfer groups.leave groups.join invites.create invites.list invites.revoke
groups:write   | expectations.set expectations.remove
hooks:manage   | groups.show-incoming-secret groups.set-incoming-secret groups.remove-incoming-secret
hooks:manage   | groups.show-token groups.rotate-token hooks.create hooks.list hooks.info hooks.log hooks.stats hooks.update
hooks:manage   | hooks.list-managed hooks.example hooks.ping hooks.redeliver hooks.discard-backlog hooks.remove hooks.restore
account        | profile.show profile.update sessions.list sessions.end sessions.end-others
none           | auth.start auth.verify auth.sign-up sessions.create invites.preview live.authenticate live.ping
none           | blocks.add blocks.remove blocks.list devices.register devices.list devices.remove live.foreground
none           | bots.create bots.list bots.remove tokens.create tokens.list tokens.revoke notifications.update
none           | accounts.create accounts.list accounts.invite accounts.update accounts.deactivate accounts.activate groups.list-all
none           | hooks.list-all push.status push.test server.status
`;
