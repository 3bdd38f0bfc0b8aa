/**
 * Judges a history by what docs/reverse-webhooks.md promises, and by nothing else. Each rule names the part of the page
 * that it comes from; the files beside this one hold them. A violation is a sentence with ids, and never a text.
 *
 * Outcomes (outcome-rules.ts)
 * - "Managing", "Health", "Sending again", "Order and batches", "How long events stay": what is posted, and each change
 *   that a hook asks for, arrives; or the delivery log says that it was skipped on request, expired or dead-lettered.
 *   Nothing is dropped silently but events of messages that a retention rule removed.
 * - "The delivery log": `skipped` is on request only, `expired` is what was removed before it was delivered,
 *   `dead_lettered` what was refused five times, or behind such a one, and `delivered` what a receiver answered 2xx.
 * - "How long events stay": events that expired for a hook are a notice to its group as well.
 * - "Health": in the end nothing is pending.
 * - "What a receiver does": the receiver ends with the newest state of each message, and handles nothing twice.
 *
 * Order (order-rules.ts)
 * - "Order and batches": `strict` sends one request at a time, `none` 16 at most.
 * - "Order and batches", "Events": strict messages come by `seq`, events by `rev`, an event behind the messages that were
 *   posted before its change and before those after it. What fails holds back what is behind it, until it was refused
 *   five times with 400, 413 or 422.
 * - "Order and batches": a batch that failed is repeated as it was.
 * - "Changing": no attempt begins while a hook is paused; what was on its way may arrive.
 *
 * Repeats (repeat-rules.ts)
 * - "What counts as delivered": what was accepted comes again after a kill and a redelivery `from` (8 requests; with
 *   `none` 32 more, and 16 more with events), after a change of a hook with `none` (what overtook a waiting request: 16),
 *   after a restore where it was accepted since the backup, or when it was asked for ("Sending again").
 * - "Sending again": `from` sends everything from there on again, `only` each of its messages once more.
 * - "Sending again": what was there before the hook, or was removed by a retention rule, is not sent: 400 for `only`.
 *
 * Epochs (epoch-rules.ts)
 * - "Epochs": after a restore no id of a message and no number of a change is one that was given out before.
 *
 * Contents (content-rules.ts)
 * - "What arrives", "Events", "Epochs": the form of `webhook-id` and `message.id`, the same over all repeats.
 * - "Order and batches": an array where `batch` is above 1, at most `batch` items in their order, and of one kind.
 * - "Verifying": each delivery is genuine.
 * - "What arrives", "Events": a message is as it is when it is sent: a state that it had, with that state's `rev`, not
 *   older than the change that an event tells, empty where it was deleted.
 * - "Registering", "Changing", "Events": nothing comes that the hook does not ask for, nothing from before its
 *   registration, no event from before it asked, and none from before it was brought back.
 */
import { judgeContents } from './content-rules.ts';
import { judgeEpochs } from './epoch-rules.ts';
import { ExpectedItems } from './expected-items.ts';
import type { History } from './history.ts';
import { judgeOrder } from './order-rules.ts';
import { judgeOutcome } from './outcome-rules.ts';
import { judgeRepeats } from './repeat-rules.ts';

/** What was promised and was not so, in sentences. */
export function judgeHistory(history: History): string[] {
  const ofGroup = judgeEpochs(history).map((violation) => `group ${history.group}: ${violation}`);
  const ofHooks = history.hooks.flatMap((hook) => {
    const expected = new ExpectedItems(hook.hook, history.actions);
    const violations = [
      ...judgeContents(history, hook, expected),
      ...judgeOrder(hook, expected),
      ...judgeRepeats(hook, expected),
      ...judgeOutcome(history, hook, expected),
    ];
    return violations.map((violation) => `hook ${hook.hook} of group ${history.group}: ${violation}`);
  });
  return [...ofGroup, ...ofHooks];
}
