/**
 * Judges a history by the promises of docs/reverse-webhooks.md, and by nothing else. Each rule names the part of the
 * page that it comes from; other files of this folder contain the rules. A violation is a sentence with ids, and never
 * with the text of a message.
 *
 * Outcomes (outcome-rules.ts)
 * - "Managing", "Health", "Sending again", "Order and batches", "How long events stay": each post, and each change that
 *   a hook requests, arrives. Otherwise the delivery log shows that it was skipped on request, expired or
 *   dead-lettered. Only events of messages that a retention rule removed are dropped silently.
 * - "The delivery log": its outcomes mean:
 *   `skipped`: on request only;
 *   `expired`: removed before its delivery;
 *   `dead_lettered`: refused five times, or offered after such an item;
 *   `delivered`: the receiver answered 2xx.
 * - "How long events stay": events that expired for a hook appear as a notice in its group as well.
 * - "Health": in the end nothing is pending.
 * - "What a receiver does": the receiver ends with the newest state of each message, and handles nothing twice.
 *
 * Order (order-rules.ts)
 * - "Order and batches": `strict` sends one request at a time, `none` 16 at most.
 * - "Order and batches", "Events": strict messages come by `seq`, events by `rev`. An event comes after the messages
 *   that were posted before its change, and before those that were posted after it. A failed item holds the later ones
 *   back until the receiver has refused it five times with 400, 413 or 422.
 * - "Order and batches": a failed batch repeats unchanged.
 * - "Changing": no attempt begins while a hook is paused; a request in flight may arrive.
 *
 * Repeats (repeat-rules.ts)
 * - "What counts as delivered": accepted items may come again for these reasons:
 *   a kill and a redelivery `from`: 8 requests; with `none` 32 more, and 16 more with events;
 *   a change of a hook with `none`: 16 requests, which overtook one that waited for its connection;
 *   a restore, where the item was accepted since the backup;
 *   a request for them ("Sending again").
 * - "Sending again": `from` sends everything from there on again, `only` each of its messages once more.
 * - "Sending again": the hook gets nothing from before its registration, and nothing that retention removed: 400 for
 *   `only`.
 *
 * Epochs (epoch-rules.ts)
 * - "Epochs": after a restore the server gives out no id of a message and no number of a change a second time.
 *
 * Contents (content-rules.ts)
 * - "What arrives", "Events", "Epochs": `webhook-id` and `message.id` have their form, the same over all repeats.
 * - "Order and batches": the body is an array if `batch` is above 1. It has at most `batch` items of one kind, in their
 *   order.
 * - "Verifying": each delivery is genuine.
 * - "What arrives", "Events": a message has the state that it has when it is sent, with that state's `rev`. The state
 *   is not older than the change of the event. It is empty if the message was deleted.
 * - "Registering", "Changing", "Events": the hook gets nothing that it does not request:
 *   nothing from before its registration;
 *   no event from before it requested events;
 *   no event from before it was restored.
 */
import { judgeContents } from './content-rules.ts';
import { judgeEpochs } from './epoch-rules.ts';
import { ExpectedItems } from './expected-items.ts';
import type { History } from './history.ts';
import { judgeOrder } from './order-rules.ts';
import { judgeOutcome } from './outcome-rules.ts';
import { judgeRepeats } from './repeat-rules.ts';

/** The broken promises, in sentences. */
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
