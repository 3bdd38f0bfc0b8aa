import type { Mutant } from './mutant.ts';

const RACES = 'test/live/subscription-races';

/** Faults in the notifications that live clients get. */
export const LIVE_MUTANTS: readonly Mutant[] = [
  {
    name: 'live-removal-tick',
    promise: 'A removed member is sent changes until the database has said that it was removed.',
    file: 'src/live/membership-sync.ts',
    find: '          for (const { subscriptions } of followers) subscriptions!.suspend(conversationId);\n',
    replace: '',
    tests: [RACES, '-t', 'from the tick'],
  },
  {
    name: 'live-older-membership',
    promise: 'An answer about a membership that is older than a removal brings the member back.',
    file: 'src/live/membership-sync.ts',
    find: '      if (this.#pendingRechecks.has(name)) continue;\n',
    replace: '',
    tests: [RACES, '-t', 'older than the removal'],
  },
  {
    name: 'live-ahead-of-feed',
    promise: 'A client that is ahead of its feed gets changes twice.',
    file: 'src/live/session-subscriptions.ts',
    find: 'const skip = batch.countUpTo(subscription.rev);',
    replace: 'const skip = 0;',
    tests: [RACES, '-t', 'nothing twice'],
  },
  {
    name: 'live-gap-while-following',
    promise: 'A gap in the notifications while following begins costs a client 10 s.',
    file: 'src/live/feed-registry.ts',
    find: '        for (const recorder of this.#recorders) recorder.record(null);\n',
    replace: '',
    tests: [RACES, '-t', 'no notification of it came'],
  },
  {
    name: 'live-notified-while-following',
    promise: 'A notification while following begins is missed.',
    file: 'src/live/feed-registry.ts',
    find: '    for (const recorder of this.#recorders) recorder.record(id);\n',
    replace: '',
    tests: [RACES, '-t', 'notified of meanwhile'],
  },
  {
    name: 'live-deleted-catch-up',
    promise: 'A text that is deleted while it is read for one client is sent to later ones.',
    file: 'src/live/feed.ts',
    find: "typeof batch !== 'string' && cacheGeneration === this.#cacheGeneration",
    replace: "typeof batch !== 'string'",
    tests: [RACES, '-t', 'for one client'],
  },
  {
    name: 'live-deleted-fan-out',
    promise: 'A text that is deleted while it is read for all followers is sent to later ones.',
    file: 'src/live/feed.ts',
    find: '        if (cacheGeneration === this.#cacheGeneration) this.#cache(page.batch);',
    replace: '        this.#cache(page.batch);',
    tests: [RACES, '-t', 'for all followers'],
  },
  {
    name: 'live-demoted-admin',
    promise: 'A request that waits when its administrator is demoted is answered with the old role.',
    file: 'src/live/session.ts',
    find: '    await this.#host.whenRevalidated(this);\n',
    replace: '',
    tests: ['test/live/notifications', '-t', 'demoted'],
  },
  {
    name: 'live-send-queue',
    promise: 'What waits for a client that reads nothing takes more memory than live.send-queue-size.',
    file: 'src/live/session.ts',
    find: 'this.connection.bytesQueued <= this.#host.config.sendQueueBytes',
    replace: 'this.connection.bytesQueued <= 30 * this.#host.config.sendQueueBytes',
    tests: ['test/live/hostile', '-t', 'costs no more'],
  },
  {
    name: 'live-presence-gap',
    promise: 'A change of presence that was lost is not noticed.',
    file: 'src/live/remote-presence.ts',
    find: '    if (number !== node.number + 1) node.isCurrent = false;\n',
    replace: '',
    tests: ['test/live/presence', '-t', 'agree'],
  },
  {
    name: 'live-opposite-presence-cancels',
    promise: 'A client that listed who is online hears when somebody of the list leaves.',
    file: 'src/live/ephemeral-events.ts',
    find: '    if (queued === undefined && this.#queuedAccounts.size',
    replace:
      '    if (online !== null && queued?.online === !online) return void this.#queuedAccounts.delete(accountId);\n    if (queued === undefined && this.#queuedAccounts.size',
    tests: ['test/live/presence-notifications'],
  },
  {
    name: 'new-name-is-not-sent',
    promise: 'Clients that share a conversation with an account get no notification of its new name.',
    file: 'src/live/ephemeral-events.ts',
    find: 'this.#queue(id, { online: null, isRenamed: true });',
    replace: '',
    tests: ['test/live/notifications', '-t', 'a new name is told'],
  },
];
