import { Load } from '../../../faults/load.ts';
import { textOf } from '../../../faults/recorder.ts';
import { eventually } from '../../support/eventually.ts';
import { Conversation } from './conversation.ts';
import type { Host } from './host.ts';

const LOAD = { clients: 4, gapMs: 40 };
/** The number of accepted posts before and after the change. */
const POSTS = 50;

/** The results of the posts before, during and after a change. */
export interface Survival {
  /** The number of posts that the server answered with 200. */
  readonly posted: number;
  /** The answered posts that the receiver of the hook did not get under the `seq` of the answer. */
  readonly lost: readonly string[];
  /** The `seq` of each message that arrived, in the order of first arrivals. */
  readonly seqs: readonly number[];
}

/**
 * Posts into a new group, without a pause, while `change` runs. The clients repeat each post with its Idempotency-Key
 * until the server answers 200. Resolves when the receiver has everything.
 */
export async function underLoad(host: Host, change: () => Promise<void>): Promise<Survival> {
  const conversation = await Conversation.open(host, `Load-${Date.now()}`);
  const load = new Load([{ id: 1, webhooks: [conversation.webhook] }], LOAD);
  const posted = (count: number): Promise<number> =>
    eventually(
      async () => load.posted,
      (number) => number >= count,
    );
  try {
    load.start();
    try {
      await posted(POSTS);
      await change();
      await posted(load.posted + POSTS);
    } finally {
      await load.stop();
    }
    const { arrivals } = conversation.receiver;
    const arrived = new Map<number, string>();
    const newest = Math.max(...load.acknowledged[0]!.values());
    const isLost = ([post, seq]: readonly [number, number]): boolean => arrived.get(seq) !== textOf(post);
    await eventually(
      async () => {
        for (const { body } of arrivals) arrived.set(body.data.message.seq as number, body.data.message.text as string);
        return arrived.size;
      },
      (count) => count >= newest,
    );
    const lost = [...load.acknowledged[0]!].filter(isLost).map(([post]) => textOf(post));
    return { posted: load.posted, lost, seqs: [...new Set(conversation.receiver.seqs())] };
  } finally {
    await conversation.stop();
  }
}
