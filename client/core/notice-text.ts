import { sanitize } from './safe-text.ts';
import type { Notice } from './shapes.ts';

const NOTICE_SENTENCES: Readonly<Record<string, (who: string, actor: string, details: Notice['details']) => string>> = {
  created: (_, actor, { title }) =>
    title === undefined
      ? `${actor} opened this conversation`
      : `${actor} created the group "${stringifyAndSanitize(title)}"`,
  joined: (who, actor) => (who === actor ? `${who} joined` : `${actor} added ${who}`),
  left: (who, _, details) => `${who} left${knownSecretsSuffix(who, details)}`,
  removed: (who, actor, details) => `${actor} removed ${who}${knownSecretsSuffix(who, details)}`,
  role: (who, _, details) =>
    `${who} is ${stringifyAndSanitize(details['role'])} now${knownSecretsSuffix(who, details)}`,
  renamed: (_, actor, { title }) => `${actor} changed the title to "${stringifyAndSanitize(title)}"`,
  described: (_, actor) => `${actor} changed what the group is for`,
  published: (_, actor) => `${actor} made the group public`,
  unpublished: (_, actor) => `${actor} made the group private`,
  archived: (_, actor) => `${actor} archived the group`,
  unarchived: (_, actor) => `${actor} opened the group again`,
  token_rotated: (_, actor) => `${actor} replaced the integration token`,
  incoming_secret_set: (_, actor, { signed_only: signedOnly }) =>
    `${actor} set the secret for signed posts${signedOnly === true ? '; others are refused' : ''}`,
  incoming_secret_removed: (_, actor) => `${actor} removed the secret for signed posts`,
  message_edited: (_, actor, { seq }) => `${actor} edited message #${stringifyAndSanitize(seq)} of another sender`,
  hook_added: (_, actor, { host }) => `${actor} added the webhook to ${stringifyAndSanitize(host)}`,
  // Without an actor: a receiver that answers 410 also removes its webhook.
  hook_removed: (_, __, { host }) => `the webhook to ${stringifyAndSanitize(host)} was removed`,
  hook_restored: (_, actor, { host }) => `${actor} restored the webhook to ${stringifyAndSanitize(host)}`,
  hook_parked: (_, __, { host }) =>
    `the webhook to ${stringifyAndSanitize(host)} is parked: its deliveries fail, and the server retries them`,
  hook_messages_expired: (_, __, { host, messages }) =>
    `${stringifyAndSanitize(messages)} messages were removed before the webhook to ${stringifyAndSanitize(host)} had them`,
  hook_events_expired: (_, __, { host, events }) =>
    `${stringifyAndSanitize(events)} changes of messages expired before the webhook to ${stringifyAndSanitize(host)} had them`,
  history_lost: (_who, _actor, { first_lost_seq: first, last_lost_seq: last }) =>
    typeof first === 'number'
      ? `the server lost messages #${first} to #${stringifyAndSanitize(last)}; their numbers are given out again`
      : 'the server lost changes of this conversation',
};

/**
 * The secrets that a person may still know after leaving a group or losing the role of an admin; empty if there are
 * none.
 */
function knownSecretsSuffix(who: string, { token, invites_seen: invites }: Notice['details']): string {
  const knownSecrets = [
    ...(token === 'seen' ? ['the integration token'] : []),
    ...(typeof invites === 'number' && invites > 0 ? [`${invites} open invitation${invites === 1 ? '' : 's'}`] : []),
  ];
  return knownSecrets.length === 0 ? '' : `; ${who} still knows ${knownSecrets.join(' and ')}`;
}

/** A sentence for a notice. If the kind of the notice is newer than this client, the name of the kind. */
export function noticeText({ kind, actor, details }: Notice): string {
  const actorName = actor === null ? 'the administrator' : sanitize(actor.nick ?? actor.name);
  const who = typeof details['nick'] === 'string' ? stringifyAndSanitize(details['nick']) : actorName;
  const describe = NOTICE_SENTENCES[kind];
  if (describe !== undefined) return describe(who, actorName, details);
  const facts = Object.entries(details).map(([key, value]) => `${sanitize(key)} ${stringifyAndSanitize(value)}`);
  return [sanitize(kind).replaceAll('_', ' '), ...(facts.length === 0 ? [] : [`(${facts.join(', ')})`])].join(' ');
}

function stringifyAndSanitize(value: unknown): string {
  return sanitize(String(value));
}
