import type { Mutant } from './mutant.ts';

const SUBSCRIPTIONS = 'src/live/session-subscriptions.ts';
const FOLLOW = 'test/live/follow.test.ts';
const MEMBERSHIPS = 'src/live/membership-sync.ts';
const NOTIFICATIONS = 'test/live/notifications.test.ts';

/** Faults in the feeds, pages and memberships of live clients. */
export const LIVE_FEED_MUTANTS: readonly Mutant[] = [
  {
    name: 'client-ids-are-told-to-all-senders',
    promise: 'A client_id is told to the sender of its message alone.',
    file: 'src/live/change-batch.ts',
    find: 'this.#senderFrames.filter((frame) => frame.accountId === accountId);',
    replace: 'this.#senderFrames.filter(() => accountId > 0);',
    tests: ['test/live/client-ids.test.ts'],
  },
  {
    name: 'client-gets-its-last-change-again',
    promise: 'A client gets the changes behind the one that it has.',
    file: 'src/live/change-batch.ts',
    find: 'while (count > 0 && this.#revs[count - 1]! > rev) count -= 1;',
    replace: 'while (count > 0 && this.#revs[count - 1]! >= rev) count -= 1;',
    tests: ['test/live/subscription-races.test.ts', '-t', 'from the change behind its last one'],
  },
  {
    name: 'follows-one-conversation-too-many',
    promise: 'A connection follows a bounded number of conversations.',
    file: SUBSCRIPTIONS,
    find: 'return this.#subscriptions.size >= MAX_SUBSCRIBED_CONVERSATIONS;',
    replace: 'return this.#subscriptions.size > MAX_SUBSCRIBED_CONVERSATIONS;',
    tests: [FOLLOW, '-t', 'until there is room for it'],
  },
  {
    name: 'new-member-misses-own-notice',
    promise: 'A new member gets the conversation from the notice on that says so.',
    file: SUBSCRIPTIONS,
    find: '(joinNoticeRev === null ? head : joinNoticeRev - 1)',
    replace: '(joinNoticeRev === null ? head : joinNoticeRev)',
    tests: [FOLLOW, '-t', 'who is added gets'],
  },
  {
    name: 'removed-member-follows-on',
    promise: 'What a removed member follows ends.',
    file: SUBSCRIPTIONS,
    find: '      this.#remove(subscription);\n      this.session.send(leftNotification(conversationId));',
    replace:
      '      this.session.send(leftNotification(conversationId));\n      subscription.isAwaitingMembershipCheck = false;\n      this.#resume(subscription);',
    tests: [FOLLOW, '-t', 'what a removed member follows'],
  },
  {
    name: 'lost-word-of-removal-not-found',
    promise: 'A removal whose word was lost is found.',
    file: MEMBERSHIPS,
    find: 'for (const id of subscriptions.conversations) if (!current.has(id)) this.recheck(id, accountId);',
    replace: '',
    tests: [NOTIFICATIONS, '-t', 'a removal whose word was lost'],
  },
  {
    name: 'second-page-never-read',
    promise: 'A feed reads on while there is more than one page.',
    file: 'src/live/feed.ts',
    find: '      this.#hasUnreadChanges ||= page.hasMore;\n',
    replace: '',
    tests: ['test/live/subscription-races.test.ts', '-t', 'page by page'],
  },
];
