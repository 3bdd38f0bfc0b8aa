import { errorSentence } from '../../client/core/delivery-sentences.ts';
import { counted } from './words.ts';

const numberFormat = new Intl.NumberFormat();

const withinMs = (ms: number | null): string => (ms === null ? 'more than 10 s' : `${numberFormat.format(ms)} ms`);
const messages = (count: number): string => counted(count, 'message', 'messages');

/** The words of the webhooks of a group. */
export const hookWords = {
  messages,
  hooks: 'Reverse webhooks',
  allHooks: 'The reverse webhooks of all groups that you own or administer. Those that fail come first.',
  toDetails: 'Details of the group',
  toHooks: 'Reverse webhooks',

  noHooks:
    'There is none yet. A reverse webhook sends each message of this group as a signed HTTP POST to a URL of yours, in order, and repeats it until the receiver has taken it.',
  noManagedHooks: 'Your groups have no reverse webhooks.',
  removedHooks: 'Removed',
  state: {
    active: 'active',
    failing: 'failing',
    parked: 'failing for days',
    paused: 'paused',
    removed: 'removed',
  } as Readonly<Record<string, string>>,
  hookNumber: (id: number) => `Reverse webhook ${id}`,
  pending: 'Pending',
  oldestPending: 'Oldest pending',
  lastDelivery: 'Last delivery',
  lastError: 'Last error',
  nextAttempt: 'Next attempt',
  never: 'none yet',
  none: 'none',
  requestsOfDay: 'Requests of the last 24 hours',
  noRequests: 'no requests in 24 hours',
  requests: (delivered: number, failed: number) =>
    `${numberFormat.format(delivered)} delivered, ${numberFormat.format(failed)} failed`,

  add: 'Add a reverse webhook',
  url: 'URL to which messages are sent',
  description: 'What it is for (optional)',
  moreOptions: 'More options',
  order: 'Order',
  orders: {
    strict: 'strict: one after the other',
    none: 'none: a failed one does not hold back the others',
  } as Readonly<Record<string, string>>,
  batch: 'Messages in a request, at most',
  signature: 'Signature',
  signatures: {
    v1: 'with a secret',
    v1a: "with the server's keys",
    both: 'with both',
  } as Readonly<Record<string, string>>,
  events: 'Also send changes of messages',
  eventKinds: {
    'message.updated': 'edited messages',
    'message.deleted': 'deleted messages',
  } as Readonly<Record<string, string>>,
  skip: 'Do not send messages of',
  skipped: { webhook: 'programs', bot: 'bots' } as Readonly<Record<string, string>>,
  secretOf: (id: number) => `reverse webhook ${id}`,
  secretUsage: 'The receiver verifies with it that a request comes from this server.',
  example: 'Example request',
  exampleIs: 'What the receiver gets for a message, signed as a real one. Nothing is sent.',
  showExample: 'Show an example request',
  selectAll: (count: number) => `Select ${messages(count)}`,
  ofAnotherGroup: 'This group has no such reverse webhook.',
  verifyCode: 'Code that verifies a request in the receiver',
  language: 'Language',
  change: 'Change',

  resume: 'Resume now',
  resumeQuestion: (pending: number) =>
    `The server sends the next message at once, and then the others: ${messages(pending)}.`,
  pause: 'Pause',
  pauseQuestion: 'The server sends nothing until you resume it. New messages wait.',
  ping: 'Ping',
  pingHint: 'Sends a signed test request to the receiver now, apart from all messages.',
  pinged: (answer: { delivered: boolean; category: string | null; code: number | null; duration_ms: number }) =>
    answer.delivered
      ? `The receiver answered ${answer.code} after ${answer.duration_ms} ms.`
      : `The ping failed after ${answer.duration_ms} ms: ${errorSentence(answer)}.`,
  redeliver: 'Send again',
  redeliverFrom: 'Send again what was posted in the last',
  redeliverFromMessage: 'or from this message on (its number)',
  redeliverRanges: { '1': 'hour', '6': '6 hours', '24': '24 hours', '168': '7 days' } as Readonly<
    Record<string, string>
  >,
  redeliverPreview: (count: number, from: string | null) =>
    from === null || count === 0
      ? 'The group has no such message: nothing would be sent.'
      : `The server would send ${messages(count)}, beginning with message ${from.split(':')[1]}. The receiver gets those again that it has already.`,
  redelivered: (pending: number) => `Now ${messages(pending)} ${pending === 1 ? 'waits' : 'wait'} for the receiver.`,
  sendSelected: (count: number) => `Send ${messages(count)} again`,
  sendSelectedQuestion: 'The receiver gets these messages again, apart from the order of the others.',
  sendOne: (range: string) => `Send ${range.toLowerCase()} again`,
  discard: 'Skip the backlog',
  discardQuestion: (pending: number) =>
    `The receiver will not get ${pending === 1 ? 'the message that waits' : `the ${numberFormat.format(pending)} messages that wait`}. The server continues with the next message.`,
  discarded: (skipped: number) => `${messages(skipped)} will not be sent.`,
  rotate: 'Replace the secret',
  rotateQuestion:
    'The server signs with the new secret at once, and with the present one too for 24 hours. An even older secret ends now.',
  oldSecretUntil: (moment: string) => `The secret before the last replacement signs too until ${moment}.`,
  remove: 'Remove',
  removeQuestion: (pending: number) =>
    pending === 0
      ? 'The receiver gets no further message. You cannot restore the hook.'
      : `The receiver gets no further message, and not ${pending === 1 ? 'the one that waits' : `the ${numberFormat.format(pending)} that wait`}. You cannot restore the hook.`,
  restore: 'Restore',
  restoreQuestion: 'The server sends what the receiver has missed, from the message that it answered with 410.',

  position: 'Position',
  positionIs: (start: number, cursor: number, last: number) =>
    `The server has come to message ${numberFormat.format(cursor)} of ${numberFormat.format(last)}; the hook began with message ${numberFormat.format(start + 1)}.`,
  requestsOverTime: 'Requests over time',
  latency: 'Time until the answer',
  range: 'Period',
  ranges: { '24': '24 hours', '168': '7 days' } as Readonly<Record<string, string>>,
  ago: (period: string) => `${period} ago`,
  now: 'now',
  most: (count: number) => `highest: ${counted(count, 'request', 'requests')}`,
  slowest: (ms: number | null) => `highest: ${withinMs(ms)}`,
  asTable: 'As a table',
  time: 'Time',
  delivered: 'Delivered',
  failed: 'Failed',
  median: 'Half within',
  p95: '95 of 100 within',
  within: withinMs,

  log: 'Delivery log',
  logEmpty: 'The log of the last 7 days has no such attempt.',
  outcome: 'Result',
  outcomes: {
    all: 'all',
    failed: 'failed',
    delivered: 'delivered',
    'set aside': 'set aside, skipped or expired',
  } as Readonly<Record<string, string>>,
  logSince: 'Since',
  logPeriods: { all: '7 days', '24': '24 hours', '1': 'an hour ago' } as Readonly<Record<string, string>>,
  message: 'Message',
  messageRange: (first: number, last: number) => (first === last ? `Message ${first}` : `Messages ${first} to ${last}`),
  attemptOf: (attempt: number) => (attempt === 0 ? 'not sent' : `attempt ${numberFormat.format(attempt)}`),
  newer: (count: number) => `Show ${counted(count, 'newer attempt', 'newer attempts')}`,
  newerMany: 'Show newer attempts',
  older: 'Show older attempts',
} as const;
